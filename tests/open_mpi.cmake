# ctest reads this before it starts a test of a build with Open MPI. As MPICH does, tests start more ranks than there are
# cores, and ranks keep to no core.
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
set(ENV{OMPI_MCA_hwloc_base_binding_policy} none)
