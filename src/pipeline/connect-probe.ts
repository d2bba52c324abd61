import { connect } from "node:net";

/**
 * Whether the host of a URL answers a TCP connection within a time; false once the time is over. A
 * refusal is an answer: a server that shuts down refuses new connections while it finishes the open
 * ones. Of the runtime's ways to connect, this one closes the socket of an attempt that is given up.
 */
export function answersConnection(url: string, timeoutMs: number): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url);
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? defaultPort(protocol) : Number(port),
  });
  return new Promise((resolve) => {
    const end = (hasAnswered: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(hasAnswered);
    };
    const timer = setTimeout(() => end(false), timeoutMs);
    socket.once("connect", () => end(true));
    socket.on("error", () => end(true));
  });
}

function defaultPort(protocol: string): number {
  return protocol === "https:" ? 443 : 80;
}
