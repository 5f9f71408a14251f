/* Tells a process how large AMX's registers are, where a virtual machine keeps that to itself.
 *
 * Some virtual machines have AMX but leave CPUID's leaves 0x1d and 0x1e empty. oneDNN, and OpenVINO with it, sets the
 * registers up by these leaves and dies at its first 8-bit product. Preloaded with LOXIA_PALETTE in the environment,
 * this makes CPUID fault, which Linux offers for such things, and answers these two leaves itself. All others are
 * passed on, and nothing is slower afterwards: CPUID is asked when a library starts.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012, PALETTES = 0x1d, PRODUCTS = 0x1e };

static struct sigaction before;

/* Whether the processor has 8-bit products on tiles and does not say how large those are. */
int palette_is_hidden(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 25 & 1))
        return 0;
    return !__get_cpuid_count(PALETTES, 1, &a, &b, &c, &d) || b == 0;
}

static void answer(int number, siginfo_t *information, void *context) {
    (void)number;
    (void)information;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)registers[REG_RIP];
    if (at[0] != 0x0f || at[1] != 0xa2) {
        /* Not CPUID: the fault comes again, to whoever was there before. */
        sigaction(SIGSEGV, &before, 0);
        return;
    }
    unsigned leaf = registers[REG_RAX], part = registers[REG_RCX], a, b, c, d;
    syscall(SYS_arch_prctl, SET_CPUID, 1);
    __cpuid_count(leaf, part, a, b, c, d);
    syscall(SYS_arch_prctl, SET_CPUID, 0);
    if (leaf == 0 && a < PRODUCTS)
        a = PRODUCTS;
    if (leaf == PALETTES || leaf == PRODUCTS)
        a = b = c = d = 0;
    if (leaf == PALETTES && part == 0)
        a = 1; /* palettes beside the empty one */
    if (leaf == PALETTES && part == 1)
        a = 1024 << 16 | 8192, b = 8 << 16 | 64, c = 16; /* bytes; registers, bytes of a row; rows */
    if (leaf == PRODUCTS && part == 0)
        b = 64 << 8 | 16; /* bytes of a row; rows */
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
    if (!getenv("LOXIA_PALETTE") || !palette_is_hidden())
        return;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before);
    syscall(SYS_arch_prctl, SET_CPUID, 0);
}
