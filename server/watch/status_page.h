// The status page: one HTML document with its script, and the JSON that it draws.
#pragma once

#include <string>

#include "server/service.h"

namespace oncilla::server {

const std::string& StatusPage();
std::string StatusJson(Service& service);

}  // namespace oncilla::server
