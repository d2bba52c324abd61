import { join } from "node:path";
import { connectToSocket, listenAtSocket, type SocketListener } from "../../link/unix-socket.ts";

/**
 * One line of text each way, without a version: the supervisor of an older program must understand
 * the command of a newer one.
 */
const request = "restart\n";
const done = "ok\n";

/** Path of the supervisor's socket. */
export function restartSocketPath(dataDir: string): string {
  return join(dataDir, "supervisor.sock");
}

/**
 * Lets commands of this user ask for a restart. It resolves to the reason if the restart failed.
 */
export function listenForRestarts(
  path: string,
  restart: () => Promise<string | undefined>,
): SocketListener {
  return listenAtSocket(path, (channel) => {
    let text = "";
    return {
      received(bytes) {
        if (text.length > request.length) return;
        text += Buffer.from(bytes).toString("latin1");
        if (text !== request) return;
        void restart().then((problem) => {
          channel.write(Buffer.from(problem === undefined ? done : `${problem}\n`));
          channel.close();
        });
      },
      drained: () => undefined,
      ended: () => undefined,
    };
  });
}

/** Whether the supervisor of a gateway runs on this data directory. */
export async function hasSupervisor(dataDir: string): Promise<boolean> {
  try {
    await connectToSocket(restartSocketPath(dataDir), (channel) => {
      channel.close();
      return { received: () => undefined, drained: () => undefined, ended: () => undefined };
    });
    return true;
  } catch {
    return false;
  }
}

/**
 * Resolves when the gateway has restarted, or to the reason why not. Rejects when no supervisor
 * listens.
 */
export async function askForRestart(path: string): Promise<string | undefined> {
  const answer = Promise.withResolvers<string>();
  await connectToSocket(path, (channel) => {
    let text = "";
    channel.write(Buffer.from(request));
    return {
      received: (bytes) => void (text += Buffer.from(bytes).toString()),
      drained: () => undefined,
      ended: () => answer.resolve(text),
    };
  });
  const text = await answer.promise;
  if (text === done) return undefined;
  return text.trim() || "the gateway ended meanwhile";
}
