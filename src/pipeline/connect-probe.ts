/**
 * Whether a TCP connection to the host of a URL can be opened within a time. The runtime's `fetch`
 * has no connect deadline of its own and does not tell connecting from waiting.
 */
export function canConnect(url: string, timeoutMs: number): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    const settle = (isReachable: boolean): void => {
      clearTimeout(timer);
      resolve(isReachable);
    };
    Bun.connect({
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? defaultPort(protocol) : Number(port),
      socket: {
        open: (socket) => {
          settle(true);
          socket.end();
        },
        data: () => undefined,
        connectError: () => settle(false),
        error: () => settle(false),
      },
    }).catch(() => settle(false));
  });
}

function defaultPort(protocol: string): number {
  return protocol === "https:" ? 443 : 80;
}
