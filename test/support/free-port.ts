/** A port of this machine that nobody listens on. */
export function freePort(): number {
  using listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: () => undefined },
  });
  return listener.port;
}

/**
 * A port that stays free until its server starts: the system gives those from 32,768 on to
 * outgoing connections, of which other tests open many.
 */
export function quietPort(): number {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    try {
      using _listener = Bun.listen({
        hostname: "127.0.0.1",
        port,
        socket: { data: () => undefined },
      });
      return port;
    } catch {
      // Somebody listens on it.
    }
  }
}
