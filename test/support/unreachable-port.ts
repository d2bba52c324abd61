import { connect, type Socket } from "node:net";

/** A port of this machine that answers no connection attempt, like a host behind a dead link. */
export interface UnreachablePort extends AsyncDisposable {
  readonly port: number;
}

/** Listens and then never runs again, so that no connection is accepted from its queue. */
const listener =
  "const { port } = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });" +
  "require('node:fs').writeSync(1, port + '\\n'); Bun.sleepSync(600_000);";

/** More than any queue of the runtime or of the system has room for. */
const mostConnections = 5_000;

/** Fills the queue of a listener; the system then ignores further connections. */
export async function openUnreachablePort(): Promise<UnreachablePort> {
  const child = Bun.spawn([process.execPath, "-e", listener], { stdout: "pipe" });
  const sockets: Socket[] = [];
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    child.kill("SIGKILL");
    await child.exited;
  };
  try {
    const { value } = await child.stdout.getReader().read();
    const port = Number(new TextDecoder().decode(value));
    for (let count = 0; count < mostConnections; count += 1) {
      const socket = connect(port, "127.0.0.1");
      sockets.push(socket);
      if (!(await opens(socket))) return { port, [Symbol.asyncDispose]: close };
    }
    throw new Error("the queue of the listener is never full");
  } catch (error) {
    await close();
    throw error;
  }
}

/** A connection over loopback that takes longer than this never succeeds. */
const timeoutMs = 300;

function opens(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    socket.on("error", () => undefined);
    socket.once("connect", () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
