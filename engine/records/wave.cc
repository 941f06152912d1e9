// RIFF chunks of WAV files, checked in TensorFlow's order and with its wording.
#include "engine/records/wave.h"

#include <limits>

namespace oncilla {
namespace {

class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  Result<std::string_view> Take(size_t n, std::string_view what) {
    if (n > rest_.size()) {
      return InvalidArgument("Data too short when trying to read ", what, ": ", rest_.size(),
                             " bytes of ", n);
    }
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  Status Expect(std::string_view text) {
    ONCILLA_ASSIGN(const std::string_view found, Take(text.size(), text));
    if (found == text) return Status();
    return InvalidArgument("Header mismatch: Expected ", text, " in the WAV file");
  }
  Result<uint32_t> Number(size_t bytes, std::string_view what) {
    ONCILLA_ASSIGN(const std::string_view text, Take(bytes, what));
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= static_cast<uint32_t>(static_cast<uint8_t>(text[i])) << (8 * i);
    }
    return value;
  }

 private:
  std::string_view rest_;
};

Status ReadFormat(Input& in, Wave& out) {
  ONCILLA_TRY(in.Expect("fmt "));
  ONCILLA_ASSIGN(const uint32_t size, in.Number(4, "the format's size"));
  if (size != 16 && size != 18) {
    return InvalidArgument("Bad format chunk size for WAV: Expected 16 or 18, but got ", size);
  }
  ONCILLA_ASSIGN(const uint32_t format, in.Number(2, "the format"));
  if (format != 1) {
    return InvalidArgument("Bad audio format for WAV: Expected 1 (PCM), but got ", format);
  }
  ONCILLA_ASSIGN(const uint32_t channels, in.Number(2, "the channels"));
  ONCILLA_ASSIGN(out.rate, in.Number(4, "the rate"));
  ONCILLA_ASSIGN(const uint32_t bytes_per_second, in.Number(4, "the bytes a second"));
  ONCILLA_ASSIGN(const uint32_t bytes_per_sample, in.Number(2, "the bytes of a sample"));
  ONCILLA_ASSIGN(const uint32_t bits, in.Number(2, "the bits of a sample"));
  if (bits != 16) return InvalidArgument("Can only read 16-bit WAV files, but received ", bits);
  if (channels == 0) return InvalidArgument("Bad number of channels for WAV: 0");
  if (bytes_per_sample != 2 * channels) {
    return InvalidArgument("Bad bytes per sample in WAV header: Expected ", 2 * channels,
                           " but got ", bytes_per_sample);
  }
  if (uint64_t{bytes_per_second} != uint64_t{out.rate} * bytes_per_sample) {
    return InvalidArgument("Bad bytes per second in WAV header: Expected ",
                           uint64_t{out.rate} * bytes_per_sample, " but got ", bytes_per_second);
  }
  out.channels = channels;
  return size == 18 ? in.Take(2, "the format's extension").status() : Status();
}

void Append(std::string& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

Result<Wave> ReadWave(std::string_view bytes) {
  Input in(bytes);
  Wave out;
  ONCILLA_TRY(in.Expect("RIFF"));
  ONCILLA_TRY(in.Take(4, "the size of the file").status());
  ONCILLA_TRY(in.Expect("WAVE"));
  ONCILLA_TRY(ReadFormat(in, out));
  bool found = false;
  while (!in.empty()) {
    ONCILLA_ASSIGN(const std::string_view name, in.Take(4, "a chunk's name"));
    ONCILLA_ASSIGN(const uint32_t size, in.Number(4, "a chunk's size"));
    if (size > static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) {
      return InvalidArgument("a WAV chunk is too large: ", size, " bytes");
    }
    if (name != "data") {
      ONCILLA_TRY(in.Take(size, "a chunk").status());
      continue;
    }
    if (found) return InvalidArgument("More than one data chunk found in WAV");
    found = true;
    // A trailing incomplete sample is ignored.
    out.samples = size / (2 * out.channels);
    ONCILLA_ASSIGN(out.data,
                   in.Take(static_cast<size_t>(2 * out.channels * out.samples), "the samples"));
  }
  if (!found) return InvalidArgument("No data chunk found in WAV");
  return out;
}

std::string WaveHeader(uint16_t channels, uint32_t rate, uint32_t bytes) {
  std::string out = "RIFF";
  Append(out, 36 + bytes, 4);
  out += "WAVEfmt ";
  Append(out, 16, 4);
  Append(out, 1, 2);
  Append(out, channels, 2);
  Append(out, rate, 4);
  Append(out, rate * channels * 2, 4);
  Append(out, channels * 2u, 2);
  Append(out, 16, 2);
  out += "data";
  Append(out, bytes, 4);
  return out;
}

}  // namespace oncilla
