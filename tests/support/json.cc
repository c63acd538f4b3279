#include "tests/support/json.h"

#include <cstdlib>
#include <cstring>

namespace tcpx {
namespace {

const Json kNothing;

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  bool All(Json* value) {
    if (!Value(value, 0)) return false;
    Space();
    return at_ == text_.size();
  }
  size_t at() const { return at_; }

 private:
  static constexpr int kDepthMax = 64;

  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Space() {
    while (Next() != '\0' && std::strchr(" \t\r\n", Next()) != nullptr) ++at_;
  }
  bool Take(const char* word) {
    if (text_.compare(at_, std::strlen(word), word) != 0) return false;
    at_ += std::strlen(word);
    return true;
  }

  bool Value(Json* value, int depth) {
    if (depth > kDepthMax) return false;
    Space();
    switch (Next()) {
      case '{':
        return Object(value, depth);
      case '[':
        return List(value, depth);
      case '"':
        value->kind = Json::Kind::kText;
        return Text(&value->text);
      case 't':
      case 'f':
        value->kind = Json::Kind::kFlag;
        value->flag = Next() == 't';
        return Take(value->flag ? "true" : "false");
      case 'n':
        return Take("null");
      default:
        return Number(value);
    }
  }

  bool Object(Json* value, int depth) {
    value->kind = Json::Kind::kObject;
    ++at_;
    Space();
    if (Take("}")) return true;
    do {
      std::string name;
      Space();
      if (Next() != '"' || !Text(&name)) return false;
      Space();
      if (!Take(":") || value->members.count(name) > 0) return false;
      if (!Value(&value->members[name], depth + 1)) return false;
      Space();
    } while (Take(","));
    return Take("}");
  }

  bool List(Json* value, int depth) {
    value->kind = Json::Kind::kList;
    ++at_;
    Space();
    if (Take("]")) return true;
    do {
      value->list.emplace_back();
      if (!Value(&value->list.back(), depth + 1)) return false;
      Space();
    } while (Take(","));
    return Take("]");
  }

  bool Text(std::string* text) {
    for (++at_; Next() != '"'; ++at_) {
      if (static_cast<unsigned char>(Next()) < 0x20) return false;  // The end too.
      if (Next() != '\\') {
        text->push_back(Next());
        continue;
      }
      ++at_;
      if (Next() == 'u') {
        if (at_ + 4 >= text_.size()) return false;
        char* end = nullptr;
        const std::string digits = text_.substr(at_ + 1, 4);
        const long code = std::strtol(digits.c_str(), &end, 16);
        if (*end != '\0') return false;
        text->push_back(code < 0x80 ? static_cast<char>(code) : '?');
        at_ += 4;
      } else if (Next() != '\0' && std::strchr("\"\\/bfnrt", Next()) != nullptr) {
        text->push_back(Next());
      } else {
        return false;
      }
    }
    ++at_;
    return true;
  }

  bool Digits() {
    const size_t before = at_;
    while (Next() >= '0' && Next() <= '9') ++at_;
    return at_ > before;
  }

  bool Number(Json* value) {
    const size_t begin = at_;
    value->kind = Json::Kind::kNumber;
    (void)Take("-");
    if (!Take("0") && !Digits()) return false;
    if (Take(".") && !Digits()) return false;
    if (Next() == 'e' || Next() == 'E') {
      ++at_;
      if (!Take("+")) (void)Take("-");
      if (!Digits()) return false;
    }
    value->number = std::strtod(text_.substr(begin, at_ - begin).c_str(), nullptr);
    return true;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

const Json& Json::operator[](const std::string& name) const {
  const auto found = members.find(name);
  return found == members.end() ? kNothing : found->second;
}

const Json& Json::operator[](size_t index) const { return index < list.size() ? list[index] : kNothing; }

bool ParseJson(const std::string& text, Json* value, std::string* error) {
  Reader reader(text);
  if (reader.All(value)) return true;
  *error = "no JSON from byte " + std::to_string(reader.at()) + " on: " + text.substr(reader.at(), 40);
  return false;
}

}  // namespace tcpx
