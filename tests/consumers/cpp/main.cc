// The C++ face as an application uses it.
#include <oncilla/oncilla.hpp>
#include <oncilla/oncilla_opencl.hpp>
#include <oncilla/oncilla_precision.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  oncilla::SessionOptions options;
  options.device = "cpu";
  auto session = oncilla::Session::Create(options).value();
  auto model = session.Load(argv[1]).value();
  auto image =
      oncilla::Tensor::Of<uint8_t>({1, 8, 8, 3}, std::vector<uint8_t>(8 * 8 * 3, 90)).value();
  auto result = model.Run({{"image", image}}).value();
  auto only = model.Run({{"image", image}}, {"", {"label"}, 0}).value();
  auto missing = model.Run({});
  const bool ok = result.size() == 3 && result["probability"].data<float>() != nullptr &&
                  result["logits"].dims() == std::vector<int64_t>{1, 1000} && only.size() == 1 &&
                  !only[0].string(0).empty() && !missing.ok() &&
                  missing.status().code() == ONCILLA_INVALID_ARGUMENT &&
                  !oncilla::opencl::MakeRuntime(nullptr).ok() &&
                  !oncilla::PrecisionCheck::Run(oncilla::Runtime::Create().value(), argv[1],
                                                {{"image", image}}, {"fp8"})
                       .ok() &&
                  session.MemoryReport().value().find("limit") != std::string::npos &&
                  session.Close().value() > 0;
  std::printf("%s: %s\n", only[0].string(0).c_str(), ok ? "consumer ok" : "consumer FAILED");
  return ok ? 0 : 1;
}
