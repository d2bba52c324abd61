import { dlopen, FFIType, ptr } from "bun:ffi";

/** The same number on Linux and macOS. */
const coreResource = 4;
const libraries = ["libc.so.6", "libc.so", "libSystem.B.dylib"];

/**
 * Sets RLIMIT_CORE to 0, hard and soft, for this process and its children: a core dump would
 * contain peppers, upstream credentials and prompts. False if that fails.
 */
export function forbidCoreDumps(): boolean {
  // struct rlimit: the soft limit, then the hard one, 64 bits each.
  const none = new BigUint64Array(2);
  for (const name of libraries) {
    try {
      const { symbols } = dlopen(name, {
        setrlimit: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
      });
      return symbols.setrlimit(coreResource, ptr(none)) === 0;
    } catch {
      // Tries the next library.
    }
  }
  return false;
}
