/**
 * Settings that the runtime reads from its environment at start; the operator's own values have
 * precedence. They shorten the longest turns of the event loop (docs/performance.md).
 */
export const runtimeSettings: Readonly<Record<string, string>> = {
  // Milliseconds between two searches for free pages in the memory of a waiting thread. The thread
  // cannot continue before another thread has ended the search, however long that one waits for a
  // core. By default there are several a second.
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "60000",
  // Milliseconds between two garbage collections that are started only by the clock. Default: 1000.
  BUN_GC_TIMER_INTERVAL: "10000",
  // Bytes that may at least be allocated before a garbage collection, whose time depends on what it
  // keeps rather than on what it frees. Default: 8 MB.
  BUN_JSC_largeHeapSize: String(32 * 1024 * 1024),
};
