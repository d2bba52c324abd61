import * as certificates from "../../../test/support/tls-certificates.ts";
import { describe, expect, test } from "bun:test";
import { noProxies, type Proxies } from "../../domain/upstream-settings.ts";
import { clientHarness } from "../../../test/support/client-harness.ts";
import { type RawPeer, rawServer, type RawServer } from "../../../test/support/raw-server.ts";
import { proxyFor } from "./address.ts";

const tls = {
  authorities: certificates.authority,
  certificate: undefined,
  key: undefined,
  serverName: "localhost",
};

function through({ port }: RawServer, authorization?: string): Proxies {
  const proxy = { hostname: "127.0.0.1", port, authorization };
  return { forHttp: proxy, forHttps: proxy, except: [] };
}

/** A proxy that opens every tunnel to the same server. */
function tunnelProxy(target: RawServer, reply = "HTTP/1.1 200 Connection established\r\n\r\n") {
  const requests: string[] = [];
  const tunnels = new Map<RawPeer, { write(bytes: Uint8Array): number }>();
  const proxy = rawServer({
    onBytes(peer, bytes) {
      const tunnel = tunnels.get(peer);
      if (tunnel !== undefined) return void tunnel.write(bytes);
      requests.push(bytes.toString());
      void Bun.connect({
        hostname: "127.0.0.1",
        port: target.port,
        socket: {
          open(socket) {
            tunnels.set(peer, socket);
            peer.write(reply);
          },
          data: (_, bytes2) => peer.write(bytes2),
          close: () => peer.end(),
        },
      });
    },
  });
  return { proxy, requests };
}

const answer = (peer: RawPeer): void =>
  peer.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${peer.index}${peer.requests.length}`);

const secure = { key: certificates.serverKey, cert: certificates.serverCertificate };

describe("a proxy", () => {
  test("gets the whole address of a plain request, and its own credential", async () => {
    using proxy = rawServer({ onRequest: answer });
    const { ask } = clientHarness({ proxies: through(proxy, "Basic dTpw") });
    await ask("http://models.example:8000/v1/a?b=c");
    const [request] = proxy.peers[0]?.requests ?? [];
    expect(request).toStartWith(
      "POST http://models.example:8000/v1/a?b=c HTTP/1.1\r\nhost: models.example:8000\r\n",
    );
    expect(request).toContain("\r\nproxy-authorization: Basic dTpw\r\n");
  });

  test("opens a tunnel for a secure one, and learns only its host", async () => {
    using server = rawServer({ tls: secure, onRequest: answer });
    const { proxy, requests } = tunnelProxy(server);
    using _ = proxy;
    const proxies = through(proxy, "Basic dTpw");
    const { send } = clientHarness({ proxies, connections: { tls } });
    const { answer: first, told } = send("https://models.example/v1", {
      headers: { authorization: "Bearer k" },
    });
    expect((await first).status).toBe(200);
    expect(told).toEqual(["connecting", "connected"]);
    const kept = send("https://models.example/v1");
    expect((await kept.answer).status).toBe(200);
    expect(kept.told).toEqual([]);
    expect(requests).toEqual([
      "CONNECT models.example:443 HTTP/1.1\r\nhost: models.example:443\r\n" +
        "proxy-authorization: Basic dTpw\r\n\r\n",
    ]);
    expect(server.peers[0]?.requests[0]).toStartWith(
      "POST /v1 HTTP/1.1\r\nhost: models.example\r\n",
    );
    expect(server.peers[0]?.requests[0]).not.toContain("proxy-authorization");
  });

  test("cannot stand for the server", async () => {
    using server = rawServer({
      tls: { key: certificates.strangerKey, cert: certificates.strangerCertificate },
      onRequest: answer,
    });
    const { proxy } = tunnelProxy(server);
    using _ = proxy;
    const { send } = clientHarness({ proxies: through(proxy), connections: { tls } });
    const failure = await send("https://models.example/").answer.catch((error: unknown) => error);
    expect(failure).toMatchObject({ stage: "connecting", code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    expect(server.peers.flatMap(({ requests }) => requests)).toEqual([]);
  });

  test.each(["https://192.0.2.1/", "https://[2001:db8::1]/"])(
    "cannot stand for a server that is named by its address: %p",
    async (url) => {
      // Valid for the host of the proxy.
      using server = rawServer({ tls: secure, onRequest: answer });
      const { proxy } = tunnelProxy(server);
      using _ = proxy;
      const own = { ...tls, serverName: undefined };
      const { send } = clientHarness({ proxies: through(proxy), connections: { tls: own } });
      const failure = await send(url).answer.catch((error: unknown) => error);
      expect(failure).toMatchObject({ stage: "connecting", code: "ERR_TLS_CERT_ALTNAME_INVALID" });
      expect(server.peers.flatMap(({ requests }) => requests)).toEqual([]);
    },
  );

  test("reaches a server by its address", async () => {
    using server = rawServer({ tls: secure, onRequest: answer });
    const { proxy } = tunnelProxy(server);
    using _ = proxy;
    const byAddress = { ...tls, serverName: "127.0.0.1" };
    const { send } = clientHarness({ proxies: through(proxy), connections: { tls: byAddress } });
    expect((await send("https://192.0.2.1/").answer).status).toBe(200);
  });

  test.each([
    ["HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "ProxyStatus407"],
    ["HTTP/1.1 200 OK\r\n\r\nmore than an answer", "ConnectionClosed"],
    ["SSH-2.0-OpenSSH\r\n", "ConnectionClosed"],
  ])("that refuses or talks nonsense is a failure to connect: %p", async (reply, code) => {
    using server = rawServer({ tls: secure, onRequest: answer });
    const { proxy } = tunnelProxy(server, reply);
    using _ = proxy;
    const { send } = clientHarness({ proxies: through(proxy), connections: { tls } });
    const failure = await send("https://models.example/").answer.catch((error: unknown) => error);
    expect(failure).toMatchObject({ stage: "connecting", code });
  });

  test("is not used for this machine", async () => {
    using server = rawServer({ onRequest: answer });
    using proxy = rawServer({});
    const { ask } = clientHarness({ proxies: through(proxy) });
    expect((await ask(server.url)).status).toBe(200);
    expect(proxy.peers).toEqual([]);
  });
});

test.each([
  ["models.example", 443, ["models.example"], true],
  ["models.example", 443, ["MODELS.example".toLowerCase()], true],
  ["a.models.example", 443, ["models.example"], true],
  ["a.models.example", 443, [".models.example"], true],
  ["a.models.example", 443, ["*.models.example"], true],
  ["models.example", 443, [".models.example"], true],
  ["othermodels.example", 443, ["models.example"], false],
  ["models.example", 443, ["*"], true],
  ["models.example", 443, ["models.example:443"], true],
  ["models.example", 8443, ["models.example:443"], false],
  ["10.0.0.1", 443, ["10.0.0.1"], true],
  ["10.0.0.1", 443, ["10.0.0.2", ""], false],
  ["fd00::1", 443, ["fd00::1"], true],
  ["fd00::1", 443, ["[fd00::1]"], true],
])("%s:%d with NO_PROXY %p is direct: %p", (hostname, port, except, isDirect) => {
  const proxy = { hostname: "proxy", port: 3128, authorization: undefined };
  const found = proxyFor(
    { hostname, port, isSecure: true },
    { ...noProxies, forHttps: proxy, except },
  );
  expect(found === undefined).toBe(isDirect);
});
