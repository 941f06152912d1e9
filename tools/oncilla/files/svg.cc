// All sizes are in CSS pixels of a drawing 960 wide; its height follows that of the photograph.
#include "tools/oncilla/files/svg.h"

#include <algorithm>
#include <cstdio>

#include "tools/oncilla/files/base64.h"
#include "tools/oncilla/files/image.h"
#include "tools/oncilla/files/markup.h"

namespace oncilla::tool {
namespace {

constexpr double kWidth = 960, kMargin = 32, kPhotoWidth = 420, kHeader = 76, kFooter = 44;
constexpr double kRow = 56, kBar = 16;

// Cuts text to about `width` characters, between two characters.
std::string Shortened(std::string_view text, size_t width) {
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && ++characters > width) return std::string(text.substr(0, i)) + "...";
  }
  return std::string(text);
}

template <class... Args>
void Print(std::string& out, const char* format, Args... args) {
  char line[512];
  std::snprintf(line, sizeof(line), format, args...);
  out += line;
}

void Text(std::string& out, double x, double y, const char* kind, std::string_view text) {
  Print(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", kind, x, y);
  out += Escaped(text) + "</text>\n";
}

}  // namespace

Result<std::string> ClassificationSvg(const ClassificationPicture& picture) {
  double photo_height = 0;
  if (!picture.photo.empty()) {
    ONCILLA_ASSIGN(const Image image, DecodeImage(picture.photo, 3));
    const double ratio = static_cast<double>(image.height) / static_cast<double>(image.width);
    // A very tall picture is drawn narrower, in the same column.
    photo_height = std::min(kPhotoWidth * ratio, 640.0);
  }
  const double rows_height = kRow * static_cast<double>(picture.rows.size());
  const double body = std::max(photo_height, rows_height);
  const double height = kHeader + body + kFooter;
  const double left = picture.photo.empty() ? kMargin : kMargin + kPhotoWidth + 40;
  const double track = kWidth - kMargin - left;

  std::string out;
  Print(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
        "height=\"%.0f\" role=\"img\">\n",
        kWidth, height, kWidth, height);
  out += "<title>" + Escaped(picture.title) + "</title>\n";
  out +=
      "<style>text{font-family:'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;"
      "fill:#20242a}.title{font-size:24px;font-weight:600}.label{font-size:18px}"
      ".score{font-size:18px;text-anchor:end;fill:#4a5260}.caption{font-size:13px;fill:#6b7380}"
      "</style>\n";
  Print(out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", kWidth, height);
  Text(out, kMargin, 46, "title", Shortened(picture.title, 64));
  if (!picture.photo.empty()) {
    Print(out,
          "<clipPath id=\"photo\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
          "rx=\"10\"/></clipPath>\n",
          kMargin, kHeader, kPhotoWidth, photo_height);
    Print(out,
          "<image clip-path=\"url(#photo)\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
          "href=\"data:image/%s;base64,",
          kMargin, kHeader, kPhotoWidth, photo_height, IsPng(picture.photo) ? "png" : "jpeg");
    out +=
        EncodeBase64({reinterpret_cast<const char*>(picture.photo.data()), picture.photo.size()});
    out += "\"/>\n";
  }
  double y = kHeader + (body - rows_height) / 2;
  for (size_t i = 0; i < picture.rows.size(); ++i, y += kRow) {
    const LabelScore& row = picture.rows[i];
    const double filled = track * std::clamp(row.score, 0.0, 1.0);
    char score[32];
    std::snprintf(score, sizeof(score), "%.1f %%", 100 * row.score);
    Text(out, left, y + 18, "label", Shortened(row.label, picture.photo.empty() ? 80 : 36));
    Text(out, left + track, y + 18, "score", score);
    Print(out,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"4\" "
          "fill=\"#e8ebf0\"/>\n",
          left, y + 26, track, kBar);
    Print(out,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"4\" fill=\"%s\"/>\n",
          left, y + 26, std::max(filled, 2.0), kBar, i == 0 ? "#c2571a" : "#8fa3bd");
  }
  Text(out, kMargin, height - 16, "caption", Shortened(picture.caption, 130));
  return out + "</svg>\n";
}

}  // namespace oncilla::tool
