# ctest reads this before it starts a test of a build with Open MPI. As with MPICH, tests start more ranks than there are
# cores, ranks keep to no core, and ranks of this host meet on the loopback: other tests make and remove network devices.
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
set(ENV{OMPI_MCA_hwloc_base_binding_policy} none)
set(ENV{OMPI_MCA_btl_tcp_if_include} lo)
set(ENV{OMPI_MCA_oob_tcp_if_include} lo)
# What ranks print is all that is printed, as with MPICH.
set(ENV{OMPI_MCA_orte_execute_quiet} 1)
