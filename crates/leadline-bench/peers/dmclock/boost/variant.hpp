// The two names of Boost that dmclock uses, by the standard library, so that the benchmark needs no Boost.
#pragma once

#include <variant>

namespace boost {
template <typename... Types>
using variant = std::variant<Types...>;
using std::get;

template <typename T, typename... Types>
const T* get(const std::variant<Types...>* from) {
  return std::get_if<T>(from);
}
}  // namespace boost
