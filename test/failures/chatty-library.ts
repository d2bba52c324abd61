/** Loaded before the program, like a library that prints a lot. */
const print = (): void => globalThis.console.error("a library prints ".padEnd(2_000, "."));
if (process.env["SLUICE_PROCESS"] !== undefined) setInterval(print, 10).unref();
