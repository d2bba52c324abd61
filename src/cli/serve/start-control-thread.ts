import type { RunningControl } from "../../process/control-client.ts";
import type { ControlStart } from "../../process/messages.ts";
import type { Message } from "../../process/thread-link.ts";

/** Starts a control thread. Whoever uses it sends messages through the port. */
export function startControlThread(start: ControlStart): RunningControl {
  // It has no calls to keep from waiting, so it may collect its garbage more often.
  const options = { smol: true };
  const thread = new Worker(new URL("./control-thread.ts", import.meta.url).href, options);
  const ended = Promise.withResolvers<string>();
  let reason = "it ended without a word";
  // Its message may quote anything; the thread itself has told where it failed.
  thread.onerror = (event) => {
    event.preventDefault();
    reason = "of an uncaught exception";
  };
  thread.addEventListener("close", () => ended.resolve(reason));
  thread.postMessage(start);
  return {
    port: {
      post: (message) => thread.postMessage(message),
      listen(hear) {
        thread.onmessage = ({ data }: MessageEvent<Message>) => hear(data);
      },
    },
    ended: ended.promise,
    terminate: () => thread.terminate(),
  };
}
