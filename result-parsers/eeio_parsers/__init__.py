"""Outputs of benchmark tools: each folder has the parser, real outputs and tests of one."""
