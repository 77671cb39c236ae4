#include "codec/record.hpp"

namespace fast::codec {

const Record records::identity{};

}  // namespace fast::codec
