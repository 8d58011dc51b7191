"""acs-scan: finds the bytes that CUDA kernels touch, from their PTX. docs/scan.md says how."""
