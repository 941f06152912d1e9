// The metrics in Prometheus' text format 0.0.4. docs/serving.md lists them.
#pragma once

#include <string>

#include "server/service.h"

namespace oncilla::server {

std::string MetricsText(Service& service);

}  // namespace oncilla::server
