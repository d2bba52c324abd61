import type { StandardInput } from "./command.ts";

/** Writes bytes and waits until they are taken; false when the reader has gone. */
export function writeOutput(bytes: Uint8Array): Promise<boolean> {
  return new Promise((resolve, reject) => {
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
