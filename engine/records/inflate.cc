// Decompression of zlib, gzip and raw deflate data through zlib.
#include "engine/records/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "engine/base/work_limits.h"

namespace oncilla {
namespace {

// Frees zlib's state on every way out.
class Stream {
 public:
  explicit Stream(bool gzip) { ready_ = inflateInit2(&z_, MAX_WBITS + (gzip ? 16 : 0)) == Z_OK; }
  ~Stream() {
    if (ready_) inflateEnd(&z_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  bool ready() const { return ready_; }
  z_stream& operator*() { return z_; }

 private:
  z_stream z_ = {};
  bool ready_ = false;
};

constexpr size_t kPiece = size_t{1} << 16;

}  // namespace

Result<std::string> Inflate(std::string_view bytes, bool gzip) {
  std::string out;
  if (bytes.empty()) return out;
  Stream stream(gzip);
  if (!stream.ready()) return Exhausted("there is no memory to inflate");
  z_stream& z = *stream;
  Growth growth;
  std::string piece(kPiece, '\0');
  size_t read = 0;
  for (;;) {
    // zlib's counters have 32 bits, so a large input is passed in parts.
    const size_t ahead = std::min(bytes.size() - read, size_t{std::numeric_limits<uInt>::max()});
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + read));
    z.avail_in = static_cast<uInt>(ahead);
    z.next_out = reinterpret_cast<Bytef*>(piece.data());
    z.avail_out = static_cast<uInt>(piece.size());
    const int code = inflate(&z, Z_NO_FLUSH);
    read += ahead - z.avail_in;
    const size_t made = piece.size() - z.avail_out;
    ONCILLA_TRY(growth.Add(static_cast<int64_t>(made)));
    out.append(piece.data(), made);
    if (code == Z_STREAM_END) {
      if (!gzip || read == bytes.size()) return out;
      if (inflateReset(&z) != Z_OK) return Internal("zlib cannot begin again");
      continue;
    }
    if (code == Z_MEM_ERROR) return Exhausted("there is no memory to inflate");
    if (code == Z_BUF_ERROR || (code == Z_OK && made == 0 && read == bytes.size())) {
      return InvalidArgument("the compressed data ends too early, after ", bytes.size(), " bytes");
    }
    if (code != Z_OK) {
      return InvalidArgument("inflate() failed with error ", code, ": ",
                             z.msg != nullptr ? z.msg : "a dictionary is needed");
    }
  }
}

}  // namespace oncilla
