# What a wheel has beside what pip builds from source (FAST_WHEEL; scripts/wheel.sh): programs, which scripts of Python start,
# a small data set, and a library of MPICH's usual name for machines with Debian's MPICH. The target `wheel` builds all.
set(programs fastrun fast-train fast-topology fast-model fast-report fast-serve)
install(TARGETS ${programs} RUNTIME DESTINATION ${package}/bin COMPONENT python)
foreach(program IN LISTS programs)
  install(PROGRAMS ${CMAKE_CURRENT_SOURCE_DIR}/wheel/start_program.py DESTINATION ${SKBUILD_SCRIPTS_DIR} RENAME ${program} COMPONENT python)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/third_party/digits DESTINATION ${package}/share/fast/datasets COMPONENT python)

# libmpi.so.12, as all derivatives of MPICH call it, and PyPI's wheel does: an empty library that loads libmpich.so.12.
file(CONFIGURE OUTPUT empty.c CONTENT "")
add_library(fast_debian_mpich SHARED ${CMAKE_CURRENT_BINARY_DIR}/empty.c)
target_link_options(fast_debian_mpich PRIVATE -Wl,--no-as-needed)
target_link_libraries(fast_debian_mpich PRIVATE MPI::MPI_C)
set_target_properties(fast_debian_mpich PROPERTIES OUTPUT_NAME mpi SUFFIX .so.12)
install(TARGETS fast_debian_mpich LIBRARY DESTINATION ${package}/debian_mpich COMPONENT python)
add_custom_target(wheel DEPENDS ${programs} fast_python fast_python_stub fast_python_options fast_debian_mpich)
