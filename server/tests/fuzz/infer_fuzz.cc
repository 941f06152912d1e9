// libFuzzer on the messages of the gRPC form. The input is a ModelInferRequest, which is read, run
// and answered; the same bytes are also used as settings of traces and of the log.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdlib>

#include "server/grpc/messages.h"
#include "server/tests/fuzz/fuzz_service.h"
#include "tests/fuzz/wire_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most,
                                          unsigned int seed) {
  const std::string out =
      oncilla::fuzz::MutateMessage({reinterpret_cast<const char*>(data), size}, most, seed);
  std::copy(out.begin(), out.end(), data);
  return out.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oncilla::server;
  Service& service = FuzzService();
  // It would print each string that is not valid UTF-8.
  static const bool quiet = (google::protobuf::SetLogHandler(nullptr), true);
  (void)quiet;
  inference::TraceSettingRequest settings;
  if (settings.ParseFromArray(data, static_cast<int>(size))) {
    inference::TraceSettingResponse told;
    const auto now = service.Tracing(settings.model_name(), FromMessage(settings));
    if (now.ok()) ToMessage(*now, &told);
  }
  inference::LogSettingsRequest logging;
  if (logging.ParseFromArray(data, static_cast<int>(size))) {
    inference::LogSettingsResponse told;
    const auto now = service.Logging(FromMessage(logging));
    if (now.ok()) ToMessage(*now, &told);
  }
  inference::ModelInferRequest message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  auto request = FromMessage(message, service.shared_memory());
  if (!request.ok()) {
    ForClients(Message(request.status()));
    return 0;
  }
  const std::string id = request->id;
  const auto response = Await(service, *std::move(request));
  if (!response.ok()) return 0;
  inference::ModelInferResponse answer;
  ToMessage(*response, &answer);
  if (answer.id() != id || answer.outputs_size() != answer.raw_output_contents_size()) std::abort();
  return 0;
}
