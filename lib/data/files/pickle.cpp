#include "data/files/pickle.hpp"

#include <fast/core/error.hpp>
#include <utility>

#include "core/message.hpp"

namespace fast::data {

/// A machine with a stack, as pickletools of Python describes it.
class Pickle::Reader {
 public:
  Reader(Pickle& pickle, std::string_view bytes) : pickle_(pickle), rest_(bytes) {}

  const Value* read() {
    while (true) {
      const char code = take(1)[0];
      if (code == '.') return pop();
      step(code);
    }
  }

 private:
  static constexpr std::size_t most_values = std::size_t{1} << 24;

  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorKind::data, "pickle: {}: {}; download the file again", printable(pickle_.name_), why);
  }

  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) refuse("it is truncated");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  /// Little-endian.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = bytes; i-- > 0;)
      value = value << 8U | static_cast<unsigned char>(taken[i]);
    return value;
  }
  std::string_view line() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) refuse("it is truncated");
    const std::string_view text = take(end);
    take(1);
    return text;
  }

  Value& made(Kind kind) {
    if (pickle_.values_.size() >= most_values) refuse("it has too many values");
    stack_.push_back(&pickle_.values_.emplace_back());
    stack_.back()->kind = kind;
    return *stack_.back();
  }
  void text(std::size_t bytes) {
    const std::string_view found = take(number(bytes));
    made(Kind::text).text = found;
  }
  void whole(std::size_t bytes) {
    const std::uint64_t found = number(bytes);
    made(Kind::number).number =
        bytes == 4 ? static_cast<std::int32_t>(found) : static_cast<std::int64_t>(found);
  }

  Value* pop() {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size()))
      refuse("its stack is empty");
    Value* top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Value& top(Kind kind) {
    if (stack_.empty() || stack_.back()->kind != kind) refuse("its values are of other kinds");
    return *stack_.back();
  }
  /// The values since the last mark.
  std::vector<const Value*> since_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const Value*> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }
  std::vector<const Value*> last(std::size_t count) {
    std::vector<const Value*> values(count);
    while (count > 0) values[--count] = pop();
    return values;
  }
  void list(std::vector<const Value*> items) { made(Kind::list).items = std::move(items); }
  void add(Kind kind, const std::vector<const Value*>& more) {
    Value& to = top(kind);
    to.items.insert(to.items.end(), more.begin(), more.end());
  }

  /// What a function would make: none is called.
  void object(std::size_t from) {
    last(from);
    made(Kind::object);
  }
  void call() {
    const Value* arguments = pop();
    pop();
    made(Kind::object).items = {arguments};
  }
  void build() {
    const Value* state = pop();
    top(Kind::object).items = {state};
  }

  void remember(std::uint64_t place) {
    if (place > pickle_.values_.size() || stack_.empty()) refuse("its memo is damaged");
    if (memo_.size() <= place) memo_.resize(place + 1);
    memo_[place] = stack_.back();
  }
  void recall(std::uint64_t place) {
    if (place >= memo_.size() || memo_[place] == nullptr) refuse("its memo is damaged");
    stack_.push_back(memo_[place]);
  }

  bool makes_value(char code) {
    switch (code) {
      case 'N':
        made(Kind::none);
        break;
      case '\x88':
        made(Kind::number).number = 1;
        break;
      case '\x89':
        made(Kind::number);
        break;
      case 'K':
        whole(1);
        break;
      case 'M':
        whole(2);
        break;
      case 'J':
        whole(4);
        break;
      case 'U':
      case 'C':
      case '\x8c':
        text(1);
        break;
      case 'T':
      case 'X':
      case 'B':
        text(4);
        break;
      case '\x8d':
      case '\x8e':
      case '\x96':
        text(8);
        break;
      case ']':
      case ')':
        made(Kind::list);
        break;
      case '}':
        made(Kind::dictionary);
        break;
      case 'l':
      case 't':
        list(since_mark());
        break;
      case '\x85':
        list(last(1));
        break;
      case '\x86':
        list(last(2));
        break;
      case '\x87':
        list(last(3));
        break;
      case 'd': {
        auto items = since_mark();
        made(Kind::dictionary).items = std::move(items);
        break;
      }
      case 'c':
        line();
        line();
        object(0);
        break;
      case '\x93':
        object(2);
        break;
      case 'R':
      case '\x81':
        call();
        break;
      default:
        return false;
    }
    return true;
  }

  void step(char code) {
    if (makes_value(code)) return;
    switch (code) {
      case '\x80':
        take(1);
        break;  // the protocol
      case '\x95':
        take(8);
        break;  // a frame
      case '(':
        marks_.push_back(stack_.size());
        break;
      case '0':
        pop();
        break;
      case 'a': {
        const auto item = last(1);
        add(Kind::list, item);
        break;
      }
      case 'e': {
        const auto items = since_mark();
        add(Kind::list, items);
        break;
      }
      case 's': {
        const auto pair = last(2);
        add(Kind::dictionary, pair);
        break;
      }
      case 'u': {
        const auto pairs = since_mark();
        add(Kind::dictionary, pairs);
        break;
      }
      case 'b':
        build();
        break;
      case 'q':
        remember(number(1));
        break;
      case 'r':
        remember(number(4));
        break;
      case '\x94':
        remember(memo_.size());
        break;
      case 'h':
        recall(number(1));
        break;
      case 'j':
        recall(number(4));
        break;
      default:
        refuse("it has values that are not read");
    }
  }

  Pickle& pickle_;
  std::string_view rest_;
  std::vector<Value*> stack_, memo_;
  std::vector<std::size_t> marks_;
};

Pickle::Pickle(std::string_view bytes, std::string name) : name_(std::move(name)) {
  root_ = Reader(*this, bytes).read();
}

const Pickle::Value* Pickle::find(std::string_view key) const {
  if (root_->kind != Kind::dictionary) return nullptr;
  for (std::size_t i = 0; i + 1 < root_->items.size(); i += 2)
    if (root_->items[i]->kind == Kind::text && root_->items[i]->text == key)
      return root_->items[i + 1];
  return nullptr;
}

}  // namespace fast::data
