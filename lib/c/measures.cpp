#include "c/measures.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

using namespace fast;
using Form = Measure::Form;

static_assert(static_cast<int>(Form::share) == FAST_MEASURE_SHARE &&
              static_cast<int>(Form::mean) == FAST_MEASURE_MEAN &&
              static_cast<int>(Form::root_of_mean) == FAST_MEASURE_ROOT_OF_MEAN &&
              static_cast<int>(Form::exp_of_mean) == FAST_MEASURE_EXP_OF_MEAN);

namespace {

Form form_of(fast_measure_form given) {
  std::underlying_type_t<fast_measure_form> form{};  // C may put any number into an enum
  std::memcpy(&form, &given, sizeof form);
  require(form >= FAST_MEASURE_SHARE && form <= FAST_MEASURE_EXP_OF_MEAN, ErrorKind::argument,
          "fast_measures_add: form {}; choose one of fast_measure_form", form);
  return static_cast<Form>(form);
}

/// Of this name; `zero` if there is none yet.
Measure& measure_of(fast_measures& all, const Measure& zero) {
  const auto found = std::ranges::find(all.measures, zero.name, &Measure::name);
  if (found != all.measures.end()) return *found;
  require_valid({zero});
  return all.measures.emplace_back(zero);
}

}  // namespace

std::vector<Measure> c::measures_or_loss(fast_measures found, double loss_sum,
                                         std::size_t samples) {
  if (!found.measures.empty()) return std::move(found.measures);
  return {{"mean_loss", Form::mean, {loss_sum, static_cast<double>(samples)}}};
}

extern "C" {

fast_status fast_measures_add(fast_measures* measures, const char* name, fast_measure_form form,
                              double sum, double count) {
  return c::guarded([&] {
    c::require_given(measures, "measures");
    c::require_given(name, "a measure's name");
    require(!(count < 0), ErrorKind::argument,
            "fast_measures_add: \"{}\" over a count of {}; 0 or more is required", name, count);
    const Form kind = form_of(form);
    measure_of(*measures, {name, kind, {0, 0}}).add({name, kind, {sum, count}});
  });
}

fast_status fast_measures_add_score(fast_measures* measures, const char* name, double score,
                                    int is_class_1) {
  return c::guarded([&] {
    c::require_given(measures, "measures");
    c::require_given(name, "a measure's name");
    Measure& area = measure_of(*measures, empty_area(name));
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
