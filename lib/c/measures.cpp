#include "c/measures.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

using namespace fast;
using Form = Measure::Form;

static_assert(static_cast<int>(Form::share) == FAST_MEASURE_SHARE &&
              static_cast<int>(Form::mean) == FAST_MEASURE_MEAN &&
              static_cast<int>(Form::root_of_mean) == FAST_MEASURE_ROOT_OF_MEAN &&
              static_cast<int>(Form::exp_of_mean) == FAST_MEASURE_EXP_OF_MEAN);

namespace {

Form form_of(const fast_measure_form& given) {
  std::underlying_type_t<fast_measure_form> form{};  // C may put any number into an enum
  std::memcpy(&form, &given, sizeof form);
  require(form >= FAST_MEASURE_SHARE && form <= FAST_MEASURE_EXP_OF_MEAN, ErrorKind::argument,
          "fast_measures_add: form {}; choose one of fast_measure_form", form);
  return static_cast<Form>(form);
}

/// Of this name. If there is none yet, it becomes make_zero().
template <class MakeZero>
Measure& measure_of(fast_measures& all, const char* name, const MakeZero& make_zero) {
  const auto found = std::ranges::find(all.measures, name, &Measure::name);
  if (found != all.measures.end()) return *found;
  Measure zero = make_zero();
  require_valid({zero});
  return all.measures.emplace_back(std::move(zero));
}

/// A caller may not look at the status: the measures keep the first reason.
template <class Part>
fast_status adding(fast_measures* measures, const char* name, const Part& part) {
  return c::guarded([&] {
    c::require_given(measures, "measures");
    try {
      c::require_given(name, "a measure's name");
      part();
    } catch (...) {
      if (!measures->refused) measures->refused = std::current_exception();
      throw;
    }
  });
}

}  // namespace

extern "C" {

fast_status fast_measures_add(fast_measures* measures, const char* name, fast_measure_form form,
                              double sum, double count) {
  return adding(measures, name, [&] {
    require(!(count < 0), ErrorKind::argument,
            "fast_measures_add: \"{}\" over a count of {}; 0 or more is required", name, count);
    const Form kind = form_of(form);
    measure_of(*measures, name, [&] {
      return Measure{name, kind, {0, 0}};
    }).add({name, kind, {sum, count}});
  });
}

fast_status fast_measures_add_score(fast_measures* measures, const char* name, double score,
                                    int is_class_1) {
  return adding(measures, name, [&] {
    Measure& area = measure_of(*measures, name, [&] { return empty_area(name); });
    require(area.form == Form::area, ErrorKind::argument,
            "fast_measures_add_score: \"{}\" has been added by fast_measures_add; choose another "
            "name",
            name);
    const std::size_t bin = std::isnan(score) ? 0 : score_bin(score);
    // A NaN makes the area NaN.
    area.sums[bin + (is_class_1 != 0 ? score_bins : 0)] += std::isnan(score) ? score : 1;
  });
}

}  // extern "C"
