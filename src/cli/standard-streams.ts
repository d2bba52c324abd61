import type { StandardInput } from "./command.ts";

/** Writes bytes to standard output and waits until they are taken; false when the reader has gone. */
export function createProcessOutput(): (bytes: Uint8Array) => Promise<boolean> {
  // Each write tells its own failure; without a listener the event would end the process.
  process.stdout.on("error", () => undefined);
  return (bytes) =>
    new Promise((resolve, reject) => {
      process.stdout.write(bytes, (error) => {
        if (error === null || error === undefined) resolve(true);
        else if ("code" in error && error.code === "EPIPE") resolve(false);
        else reject(error);
      });
    });
}

export function createProcessInput(): StandardInput {
  return {
    get isTerminal() {
      return process.stdin.isTTY;
    },
    chunks: () => Bun.stdin.stream(),
    setEcho: (isOn) => void process.stdin.setRawMode(!isOn),
  };
}
