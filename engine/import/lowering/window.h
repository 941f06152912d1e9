// The common attributes of convolutions and pools.
#pragma once

#include <string>
#include <vector>

namespace oncilla {

struct Window {
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad = "explicit";

  // An op's attributes with these values, and defaults for the others.
  template <class Attrs>
  Attrs As() const {
    Attrs attrs;
    attrs.strides = strides;
    attrs.dilations = dilations;
    attrs.pads = pads;
    attrs.auto_pad = auto_pad;
    return attrs;
  }
};

}  // namespace oncilla
