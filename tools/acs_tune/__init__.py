"""The parts of acs-tune: profiles of versions of kernels, tables of them, and the runs that fill them."""
