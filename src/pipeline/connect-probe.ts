/**
 * Whether the host of a URL answers a TCP connection within a time. The runtime's `fetch` has no
 * connect deadline of its own and does not tell connecting from waiting. A refusal is an answer:
 * a server that shuts down refuses new connections while it finishes the open ones.
 */
export function canConnect(url: string, timeoutMs: number): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    const answered = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    Bun.connect({
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? defaultPort(protocol) : Number(port),
      socket: {
        open: (socket) => {
          answered();
          socket.end();
        },
        data: () => undefined,
        connectError: answered,
        error: answered,
      },
    }).catch(answered);
  });
}

function defaultPort(protocol: string): number {
  return protocol === "https:" ? 443 : 80;
}
