import { afterEach, describe, expect, test } from "bun:test";
import { Secret } from "../../domain/keys/secret.ts";
import type { ConnectionTls } from "../../domain/upstream-settings.ts";
import { clientHarness, textOf } from "../../../test/support/client-harness.ts";
import { rawServer, type RawPeer, type RawServer } from "../../../test/support/raw-server.ts";
import * as tls from "../../../test/support/tls-certificates.ts";

const answer = (peer: RawPeer): void =>
  peer.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${peer.index}${peer.requests.length}`);

const servers: RawServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server[Symbol.dispose]();
});

/** `heard`: the bytes that clients sent inside TLS. */
function secureServer(cert = tls.serverCertificate, key = tls.serverKey, more = {}) {
  const heard: string[] = [];
  const server = rawServer({
    tls: { cert, key, ...more },
    onBytes: (_, bytes) => void heard.push(bytes.toString()),
    onRequest: answer,
  });
  servers.push(server);
  return { ...server, heard };
}

const trusting: ConnectionTls = {
  authorities: tls.authority,
  certificate: undefined,
  key: undefined,
  serverName: undefined,
};

function clientWith(values: Partial<ConnectionTls>) {
  return clientHarness({ connections: { tls: { ...trusting, ...values } } });
}

async function codeOf(asking: Promise<unknown>): Promise<string> {
  try {
    await asking;
    return "none";
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}

describe("a server's certificate", () => {
  test("from a configured authority is accepted, and its connection is kept", async () => {
    const { url } = secureServer();
    const { ask } = clientWith({});
    expect((await ask(url)).text).toBe("01");
    expect((await ask(url)).text).toBe("02");
  });

  test("is checked against an address as well", async () => {
    const { port } = secureServer();
    expect((await clientWith({}).ask(`https://127.0.0.1:${port}`)).text).toBe("01");
    const stranger = secureServer(tls.strangerCertificate, tls.strangerKey);
    const asking = clientWith({}).ask(`https://127.0.0.1:${stranger.port}`);
    expect(await codeOf(asking)).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
    expect(stranger.heard).toEqual([]);
  });

  test.each([
    ["from an unknown authority", { authorities: undefined }],
    ["from another authority than the configured one", { authorities: tls.otherAuthority }],
  ])("%s is refused, and nothing is sent", async (_, values) => {
    const { url, heard } = secureServer();
    const code = await codeOf(clientWith(values).ask(url));
    expect(code).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    expect(heard).toEqual([]);
  });

  test("for another name is refused, and nothing is sent", async () => {
    const { url, heard } = secureServer(tls.strangerCertificate, tls.strangerKey);
    expect(await codeOf(clientWith({}).ask(url))).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
    expect(heard).toEqual([]);
  });

  test("is checked against the configured name", async () => {
    const { url } = secureServer(tls.strangerCertificate, tls.strangerKey);
    const { ask } = clientWith({ serverName: "stranger.example" });
    expect((await ask(url)).text).toBe("01");
  });

  test("does not lend its connection to requests with other settings", async () => {
    const { url, heard } = secureServer();
    const { send } = clientHarness();
    const trusted = { ...connectionsWith(trusting), id: "trusting" };
    const distrusting = {
      ...connectionsWith({ ...trusting, authorities: tls.otherAuthority }),
      id: "distrusting",
    };
    await textOf(await send(url, { connections: trusted }).answer);
    const before = heard.length;
    expect(await codeOf(send(url, { connections: distrusting }).answer)).not.toBe("none");
    expect(heard).toHaveLength(before);
  });
});

function connectionsWith(values: ConnectionTls) {
  return { id: "", idleMs: 60_000, ageMs: 60_000, mostIdle: 10, tls: values };
}

test("a client's certificate is shown where the server asks for it", async () => {
  const more = { requestCert: true, rejectUnauthorized: true, ca: tls.authority };
  const { url, heard } = secureServer(tls.serverCertificate, tls.serverKey, more);
  const key = new Secret(tls.gatewayKey);
  const { ask } = clientWith({ certificate: tls.gatewayCertificate, key });
  expect((await ask(url)).text).toBe("01");
  const before = heard.length;
  expect(await codeOf(clientWith({}).ask(url))).not.toBe("none");
  expect(heard).toHaveLength(before);
});

test("a key that does not fit its certificate fails each request, and holds no connection", async () => {
  const { url } = secureServer();
  const odd = { ...trusting, certificate: tls.gatewayCertificate, key: new Secret(tls.serverKey) };
  const { send } = clientHarness({ mostConnections: 1 });
  for (const body of ["{}", "{}", "a".repeat(100_000)]) {
    const asking = send(url, { connections: connectionsWith(odd), body });
    const failure = await asking.answer.catch((error: unknown) => error);
    expect(failure).toMatchObject({
      stage: "connecting",
      code: "ERR_OSSL_X509_KEY_VALUES_MISMATCH",
    });
    asking.cancel();
  }
  const fitting = { ...connectionsWith(trusting), id: "fitting" };
  expect((await send(url, { connections: fitting }).answer).status).toBe(200);
});

test("a server that does not speak TLS, or ends the handshake, is a failure to connect", async () => {
  const plain = rawServer({ onOpen: (peer) => peer.write("HTTP/1.1 400 Bad Request\r\n\r\n") });
  const rude = rawServer({ onBytes: (peer) => peer.end() });
  servers.push(plain, rude);
  for (const { port } of [plain, rude]) {
    const { send } = clientWith({});
    const asking = send(`https://localhost:${port}`).answer;
    expect(await asking.catch((error: unknown) => error)).toMatchObject({ stage: "connecting" });
  }
});

test("a request that is cancelled during the handshake ends its connection", async () => {
  const silent = rawServer({});
  servers.push(silent);
  const { send } = clientWith({});
  const { answer: asking, cancel } = send(`https://localhost:${silent.port}`);
  while (silent.peers.length === 0) await Bun.sleep(1);
  cancel();
  expect(await codeOf(asking)).toBe("Cancelled");
  await silent.peers[0]?.closed;
});

test("requests that are cancelled before their host answers leave no connection in a handshake", async () => {
  const silent = rawServer({});
  servers.push(silent);
  const { send } = clientWith({});
  const url = `https://localhost:${silent.port}`;
  const asking = Array.from({ length: 65 }, () => send(url));
  for (const { answer: refused, cancel } of asking) {
    cancel();
    expect(await codeOf(refused)).toBe("Cancelled");
  }
  while (silent.peers.length < 64) await Bun.sleep(1);
  await Promise.all(silent.peers.map(({ closed }) => closed));
});

test("a server that speaks before it is asked does not hold a request", async () => {
  const early = rawServer({
    tls: { cert: tls.serverCertificate, key: tls.serverKey },
    onOpen: (peer) => peer.write("220 hello\r\n"),
  });
  servers.push(early);
  expect(await codeOf(clientWith({}).ask(early.url))).not.toBe("none");
});

test("a handshake that never ends is given up once its request was sent on another connection", async () => {
  const second = Promise.withResolvers<RawPeer>();
  const { proxy: host, target } = hostThatGoesSilent(second.resolve);
  const { send, passTime } = clientWith({});
  const url = `https://localhost:${host.port}`;
  const asking = [send(url).answer];
  const answerOnce = async (count: number): Promise<void> => {
    while (target.peers[0]?.requests.length !== count) await Bun.sleep(1);
    answer(target.peers[0]);
  };
  while (target.peers.length === 0) await Bun.sleep(1);
  asking.push(send(url).answer);
  const silent = await second.promise;
  await answerOnce(1);
  await asking[0];
  await answerOnce(2);
  expect((await asking[1])?.status).toBe(200);
  passTime(31_000);
  await silent.closed;
});

/** Passes on its first connection to a server that answers when told to, and no other. */
function hostThatGoesSilent(onSilent: (peer: RawPeer) => void) {
  const cert = tls.serverCertificate;
  const target = rawServer({ tls: { cert, key: tls.serverKey } });
  const upstream = Promise.withResolvers<{ write(bytes: Uint8Array): number }>();
  const proxy = rawServer({
    onOpen(peer) {
      if (peer.index > 0) return onSilent(peer);
      void Bun.connect({
        hostname: "127.0.0.1",
        port: target.port,
        socket: {
          open: (socket) => upstream.resolve(socket),
          data: (_, bytes) => peer.write(bytes),
        },
      });
    },
    onBytes(peer, bytes) {
      if (peer.index === 0) void upstream.promise.then((socket) => socket.write(bytes));
    },
  });
  servers.push(target, proxy);
  return { proxy, target };
}
