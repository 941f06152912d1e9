/* What another library in the process may have of RE2: the same names, and other code behind them. */
#include <stdio.h>
#include <stdlib.h>

#define IMPOSTOR(number, name)                                     \
  void impostor_##number(void) __asm__(name);                      \
  void impostor_##number(void) {                                   \
    fputs("another library's RE2 was called: " name "\n", stderr); \
    abort();                                                       \
  }

IMPOSTOR(1, "_ZNK3re23RE211ReverseProgEv")
IMPOSTOR(2, "_ZN3re23RE24InitERKNS_11StringPieceERKNS0_7OptionsE")
IMPOSTOR(3, "_ZNK3re23RE25MatchERKNS_11StringPieceEmmNS0_6AnchorEPS1_i")
IMPOSTOR(4, "_ZN3re26RegexpD1Ev")
IMPOSTOR(5, "_ZN3re26Regexp6DecrefEv")
IMPOSTOR(6, "_ZN3re24Prog12CanBitStateEv")
