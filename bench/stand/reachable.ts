import type { Child } from "./child.ts";

const startLimitMs = 15_000;
const pauseMs = 20;

/** Resolves once this loopback port accepts connections. Throws if the program ends. */
export async function untilReachable(
  port: number,
  child: Child,
  limitMs = startLimitMs,
): Promise<void> {
  let hasEnded = false;
  void child.exited.then(() => (hasEnded = true));
  const deadline = performance.now() + limitMs;
  while (performance.now() < deadline && !hasEnded) {
    if (await canConnect(port)) return;
    await Bun.sleep(pauseMs);
  }
  throw new Error(`a program did not start:\n${child.complaints()}`);
}

async function canConnect(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => {} } });
    socket.end();
    return true;
  } catch {
    return false;
  }
}

/** A port that was free just now. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
