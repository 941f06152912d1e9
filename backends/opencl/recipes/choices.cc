// Names of layer classes.
#include "backends/opencl/recipes/choices.h"

#include "backends/opencl/recipes/dispatch_builder.h"

namespace oncilla::opencl {

std::string LayerName(std::string_view family, std::string_view sizes, const NodeView& node,
                      std::string_view activation) {
  std::string name = StrCat(family, " ", sizes, " ", TypeName(node.inputs[0].dtype));
  if (node.has_input(2)) name += " bias";
  if (node.has_input(3)) name += " residual";
  if (activation != "none") name += StrCat(" ", activation);
  return name;
}

}  // namespace oncilla::opencl
