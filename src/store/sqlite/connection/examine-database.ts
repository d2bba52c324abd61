/**
 * Reads every page of a database in its own thread, at about two seconds per gigabyte. Returns the
 * damage, undefined: none. Rejects when the database cannot be read at all.
 */
export function examineDatabase(path: string): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const thread = new Worker(new URL("./examine-thread.ts", import.meta.url).href);
  // The process may end while it reads.
  thread.unref();
  thread.onmessage = ({ data }: MessageEvent<Verdict>) => {
    thread.terminate();
    if (data.isRead) resolve(data.problem);
    else reject(new Error(data.problem));
  };
  thread.onerror = ({ message }) => {
    thread.terminate();
    reject(new Error(message));
  };
  thread.postMessage(path);
  return promise;
}

/** The message of the thread. */
export type Verdict =
  | { readonly isRead: true; readonly problem: string | undefined }
  | { readonly isRead: false; readonly problem: string };
