// GIF: frames of colour indices compressed with LZW (Lempel-Ziv-Welch) codes of growing width, as
// in the GIF89a specification.
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "engine/image/codec.h"

namespace oncilla::image {
namespace {

// Reads from the front. Reading past the end clears `ok` and yields zeros.
struct Input {
  std::string_view rest;
  bool ok = true;

  std::string_view Take(size_t n) {
    if (rest.size() < n) {
      ok = false;
      rest = {};
      return {};
    }
    const std::string_view taken = rest.substr(0, n);
    rest.remove_prefix(n);
    return taken;
  }
  int Byte() {
    const std::string_view one = Take(1);
    return one.empty() ? 0 : static_cast<uint8_t>(one[0]);
  }
  int Word() {
    const int low = Byte();
    return low | Byte() << 8;
  }
  // The contents of a block that is stored as sub-blocks, each with its length in front; an empty
  // one ends it.
  std::string Pieces() {
    std::string all;
    for (int size = Byte(); size != 0 && ok; size = Byte()) all += Take(static_cast<size_t>(size));
    return all;
  }
  void SkipPieces() {
    for (int size = Byte(); size != 0 && ok; size = Byte()) Take(static_cast<size_t>(size));
  }
};

Status Damaged(std::string_view what) { return InvalidArgument("Invalid GIF data: ", what); }

constexpr int kMostCodes = 4096;

// Decodes the LZW codes of a frame to colour indices.
class Codes {
 public:
  Codes(std::string_view bytes, int width) : bytes_(bytes), literals_(1 << width) { Clear(); }

  Status Decode(std::span<uint8_t> out) {
    size_t made = 0;
    int before = -1;
    WorkLook look;
    while (made < out.size()) {
      const int code = Next();
      if (code < 0 || code == literals_ + 1) return Damaged("a frame ends too early");
      if (code == literals_) {
        Clear();
        before = -1;
        continue;
      }
      if (code > count_ || (before < 0 && code >= literals_)) return Damaged("a wrong code");
      // A code that this very step defines stands for the last string followed by its own first
      // index.
      const bool fresh = code == count_;
      if (fresh && (before < 0 || count_ >= kMostCodes)) return Damaged("a wrong code");
      size_t length = 0;
      for (int at = fresh ? before : code;; at = before_[static_cast<size_t>(at)]) {
        string_[length++] =
            at < literals_ ? static_cast<uint8_t>(at) : last_[static_cast<size_t>(at)];
        if (at < literals_) break;
      }
      const uint8_t first = string_[length - 1];
      for (size_t i = length; i-- > 0 && made < out.size();) out[made++] = string_[i];
      if (fresh && made < out.size()) out[made++] = first;
      if (before >= 0 && count_ < kMostCodes) {
        before_[static_cast<size_t>(count_)] = static_cast<int16_t>(before);
        last_[static_cast<size_t>(count_)] = first;
        if (++count_ == 1 << bits_ && bits_ < 12) ++bits_;
      }
      before = code;
      ONCILLA_TRY(look.Go(static_cast<int64_t>(length)));
    }
    return Status();
  }

 private:
  void Clear() {
    count_ = literals_ + 2;
    bits_ = 1;
    while (1 << bits_ < literals_ + 2) ++bits_;
  }
  // The next code of `bits_` bits, low bits first; -1 at the end.
  int Next() {
    while (held_ < bits_) {
      if (at_ == bytes_.size()) return -1;
      hold_ |= static_cast<uint32_t>(static_cast<uint8_t>(bytes_[at_++])) << held_;
      held_ += 8;
    }
    const int code = static_cast<int>(hold_ & ((1u << bits_) - 1));
    hold_ >>= bits_;
    held_ -= bits_;
    return code;
  }

  std::string_view bytes_;
  const int literals_;
  int count_ = 0, bits_ = 0, held_ = 0;
  uint32_t hold_ = 0;
  size_t at_ = 0;
  // The table of strings. For each code that is not a literal: the code of its prefix, and its last
  // colour index.
  std::array<int16_t, kMostCodes> before_ = {};
  std::array<uint8_t, kMostCodes> last_ = {};
  std::array<uint8_t, kMostCodes> string_ = {};
};

struct Frame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  std::string_view colors;  // three bytes each
  int clear = -1;           // the transparent index; -1 if there is none
  int code_width = 0;
  std::string codes;
};

std::string_view Table(Input& in, int flags) {
  return (flags & 0x80) == 0 ? std::string_view() : in.Take(size_t{3} << ((flags & 7) + 1));
}

Result<std::vector<Frame>> ReadFrames(std::string_view bytes) {
  constexpr size_t kHeader = 6;
  Input in{bytes};
  in.Take(kHeader);
  in.Take(4);  // the logical screen size, which frames may exceed
  const int flags = in.Byte();
  in.Take(2);
  const std::string_view shared = Table(in, flags);
  if (!in.ok) return Damaged("it ends too early");
  std::vector<Frame> frames;
  std::optional<int> clear;
  while (!in.rest.empty()) {
    // Block introducers: 0x3B trailer, 0x21 extension (of which 0xF9 is graphic control), 0x2C
    // image.
    const int kind = in.Byte();
    if (kind == 0x3B) break;
    if (kind == 0x21) {
      const int label = in.Byte();
      if (label != 0xF9) {
        in.SkipPieces();
      } else {
        const std::string control = in.Pieces();
        if (control.size() != 4) return Damaged("a graphic control block of another size");
        const bool has = (static_cast<uint8_t>(control[0]) & 1) != 0;
        if (!clear) clear = has ? static_cast<uint8_t>(control[3]) : -1;
      }
    } else if (kind == 0x2C) {
      Frame frame;
      frame.left = in.Word();
      frame.top = in.Word();
      frame.width = in.Word();
      frame.height = in.Word();
      const int own = in.Byte();
      frame.interlaced = (own & 0x40) != 0;
      frame.colors = Table(in, own);
      if (frame.colors.empty()) frame.colors = shared;
      // A graphic control extension applies to the next image only.
      frame.clear = clear.value_or(-1);
      clear.reset();
      frame.code_width = in.Byte();
      frame.codes = in.Pieces();
      if (in.ok && (frame.code_width < 1 || frame.code_width > 8)) {
        return Damaged("codes of an impossible width");
      }
      if (in.ok && frame.colors.empty()) return Damaged("a frame has no colours");
      ONCILLA_TRY(CheckSize(frame.height, frame.width));
      frames.push_back(std::move(frame));
    } else {
      return Damaged("a block of no known kind");
    }
    if (!in.ok) return Damaged("it ends too early");
  }
  if (frames.empty()) return Damaged("it has no frame");
  return frames;
}

// For each row of the file, the row of the picture that it is; interlaced files store rows in four
// passes.
std::vector<int64_t> RowsOf(const Frame& frame) {
  std::vector<int64_t> rows;
  constexpr int64_t kStarts[] = {0, 4, 2, 1}, kSteps[] = {8, 8, 4, 2};
  for (size_t pass = 0; pass < 4 && frame.interlaced; ++pass) {
    for (int64_t y = kStarts[pass]; y < frame.height; y += kSteps[pass]) rows.push_back(y);
  }
  for (int64_t y = 0; y < frame.height && !frame.interlaced; ++y) rows.push_back(y);
  return rows;
}

// Draws a frame over the picture in `to`.
Status Draw(const Frame& frame, const Pixels& canvas, uint8_t* to) {
  HostVector<uint8_t> indices(static_cast<size_t>(frame.width * frame.height));
  ONCILLA_TRY(Codes(frame.codes, frame.code_width).Decode(indices));
  const int64_t right = std::min(frame.left + frame.width, canvas.width);
  const std::vector<int64_t> rows = RowsOf(frame);
  for (int64_t i = 0; i < frame.height; ++i) {
    const int64_t y = frame.top + rows[static_cast<size_t>(i)];
    if (y >= canvas.height) continue;
    const uint8_t* from = indices.data() + i * frame.width;
    for (int64_t x = frame.left; x < right; ++x) {
      const int index = *from++;
      if (index == frame.clear) continue;
      const size_t color = 3 * static_cast<size_t>(index);
      if (color >= frame.colors.size()) return Damaged("a colour that is not in the table");
      std::copy_n(frame.colors.begin() + static_cast<std::ptrdiff_t>(color), 3,
                  to + 3 * (y * canvas.width + x));
    }
  }
  return Status();
}

}  // namespace

Result<Frames> DecodeGif(std::string_view bytes, bool first_only) {
  ONCILLA_ASSIGN(const std::vector<Frame> frames, ReadFrames(bytes));
  // Sizes and the number of frames are far below 2^31, so their products fit 64 bits.
  Frames out;
  for (const Frame& frame : frames) {
    out.pixels.width = std::max(out.pixels.width, frame.width);
    out.pixels.height = std::max(out.pixels.height, frame.height);
  }
  out.in_file = std::ssize(frames);
  out.count = first_only ? 1 : out.in_file;
  out.pixels.channels = 3;
  ONCILLA_TRY(CheckSize(out.pixels.height * out.count, out.pixels.width));
  const auto size = static_cast<size_t>(out.pixels.height * out.pixels.width * 3);
  out.pixels.bytes.resize(size * static_cast<size_t>(out.count));
  for (size_t k = 0; k < static_cast<size_t>(out.count); ++k) {
    uint8_t* to = out.pixels.bytes.data() + k * size;
    if (k > 0) std::copy_n(to - size, size, to);
    ONCILLA_TRY(In(Draw(frames[k], out.pixels, to), StrCat("frame ", k)));
  }
  return out;
}

}  // namespace oncilla::image
