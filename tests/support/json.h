// json.h: reads JSON strictly (RFC 8259), for tests of what writes it.
//
// Errors: ParseJson tells where the text is no JSON; a member or element that is not there is a null value.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace tcpx {

struct Json {
  enum class Kind { kNull, kFlag, kNumber, kText, kList, kObject };

  Kind kind = Kind::kNull;
  bool flag = false;
  double number = 0;
  std::string text;
  std::vector<Json> list;
  std::map<std::string, Json> members;

  const Json& operator[](const std::string& name) const;
  const Json& operator[](size_t index) const;
  size_t size() const { return kind == Kind::kList ? list.size() : members.size(); }
};

// True exactly when all of `text` is one value.
bool ParseJson(const std::string& text, Json* value, std::string* error);

}  // namespace tcpx
