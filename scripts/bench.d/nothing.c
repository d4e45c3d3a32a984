// SPDX-License-Identifier: GPL-2.0-only
/* The program that the fork loop executes: exit(0) without a C library, so that the loop measures
 * the kernel. */
void _start(void)
{
	asm volatile("syscall" : : "a"(60), "D"(0));
	__builtin_unreachable();
}
