import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { GatewayError, overloaded } from "../../src/domain/errors/gateway-error.ts";
import { runChat } from "../../src/call/chat/chat-call.ts";
import { MemoryGate } from "../../src/domain/waiting/memory-gate.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import type { ImageFetchSettings } from "../../src/domain/upstream-settings.ts";
import type { Upstream } from "../../src/snapshot/snapshot.ts";
import {
  adapterOf,
  callOf,
  modelOf,
  pipelineOf,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../support/pipeline-fixtures.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import { objectOf } from "../../src/domain/json-fields.ts";

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);
const pngUrl = `data:image/png;base64,${png.toBase64()}`;

/** A host of images on this machine; records every request. */
class ImageHost implements AsyncDisposable {
  seen: { path: string; host: string; headers: readonly string[] }[] = [];
  closed = 0;
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: (request) => {
      const { pathname, search } = new URL(request.url);
      const headers = [...request.headers.keys()].toSorted();
      const host = request.headers.get("host") ?? "";
      this.seen.push({ path: pathname + search, host, headers });
      request.signal.addEventListener("abort", () => {
        this.closed += 1;
      });
      return this.#answer(pathname);
    },
  });

  get port(): number {
    return this.#server.port ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  #answer(path: string): Response | Promise<Response> {
    const redirect = /^\/redirect\/(.*)$/.exec(path)?.[1];
    if (redirect !== undefined) {
      return new Response("", { status: 302, headers: { location: decodeURIComponent(redirect) } });
    }
    switch (path) {
      case "/html":
        return new Response("<html>", { headers: { "content-type": "image/png" } });
      case "/half":
        return new Response(new Uint8Array([...png, ...new Uint8Array(50_000)]));
      case "/large":
        return new Response(new Uint8Array([...png, ...new Uint8Array(200_000)]));
      case "/endless":
        return new Response(endless());
      case "/silent":
        return new Promise(() => undefined);
      case "/compressed":
        return new Response(Bun.gzipSync(png), { headers: { "content-encoding": "gzip" } });
      case "/missing":
        return new Response("no", { status: 404 });
      default:
        return new Response(png, { headers: { "content-type": "text/plain" } });
    }
  }
}

/** Has no length and never ends. */
async function* endless() {
  yield png;
  for (;;) {
    yield new Uint8Array(50_000);
    await Bun.sleep(1);
  }
}

let images: ImageHost;
let model: ReturnType<typeof serveModel>;
beforeAll(() => {
  images = new ImageHost();
  model = serveModel();
});
beforeEach(() => {
  images.seen = [];
  images.closed = 0;
  model.urls = [];
  model.isDown = false;
});
afterAll(async () => {
  await images[Symbol.asyncDispose]();
  await model.server.stop(true);
});

/** A model's server that records the images it gets. */
function serveModel() {
  const state = {
    urls: [] as string[][],
    isDown: false,
    server: Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        const { turns } = readChatRequest(objectOf(await request.json()) ?? {});
        const blocks = turns.flatMap((turn) => turn.blocks);
        state.urls.push(blocks.flatMap((block) => (block.type === "image" ? [block.url] : [])));
        if (state.isDown) return new Response("", { status: 500 });
        const message = { role: "assistant", content: "I see" };
        return Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }] });
      },
    }),
  };
  return state;
}

function upstreamFor(name: string, takesImageUrls = false): Upstream {
  const url = `http://127.0.0.1:${model.server.port}/v1`;
  return upstreamOf(name, { adapter: adapterOf(url, { chat: { takesImageUrls } }) });
}

interface Look {
  readonly urls: readonly string[];
  readonly settings?: Partial<ImageFetchSettings>;
  readonly upstreams?: readonly Upstream[];
  /** The resolver's answers, in order. */
  readonly resolved?: readonly (readonly string[] | Promise<readonly string[]>)[];
  readonly signal?: AbortSignal;
  readonly imageMemory?: MemoryGate;
}

/** The settings that allow images from this machine. */
const local = { enabled: true, allowsPrivateAddresses: true };

async function look({ urls, settings = {}, resolved = [], ...look }: Look) {
  const upstreams = look.upstreams ?? [upstreamFor("up")];
  const targets = upstreams.map(({ name }, index) => targetOf(name, { priority: index + 1 }));
  const seeing = modelOf({ targets });
  const call = callOf({
    environment: { name: "test", models: new Map([[seeing.alias, seeing]]) },
    snapshot: snapshotOf(upstreams, settings),
    ...(look.signal !== undefined && { signal: look.signal }),
  });
  const answers = [...resolved];
  const asked: string[] = [];
  const pipeline = pipelineOf({
    ...(look.imageMemory !== undefined && {
      imageMemory: look.imageMemory,
      imageMemoryBytes: 300_000,
    }),
    resolveHost(name) {
      asked.push(name);
      const answer = answers.shift();
      return answer === undefined
        ? Promise.reject(new Error("ENOTFOUND"))
        : Promise.resolve(answer);
    },
  });
  const content = urls.map((url) => ({ type: "image_url", image_url: { url } }));
  const request = readChatRequest({
    model: seeing.alias,
    messages: [
      { role: "system", content: "Look." },
      { role: "user", content: [{ type: "text", text: "What is it?" }, ...content] },
    ],
  });
  const error = await errorOf(runChat(call, { request, bodyBytes: 300 }, pipeline.services));
  return { error, asked, ...pipeline };
}

async function errorOf(call: Promise<unknown>): Promise<GatewayError | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

const at = (path: string) => `http://127.0.0.1:${images.port}${path}`;
const named = { ...local, allowedHosts: ["127.0.0.1"] };

test("an image has the media type of its bytes, not of its headers", async () => {
  const { error } = await look({ urls: [at("/cat.txt?size=1")], settings: named });
  expect(error).toBeUndefined();
  expect(model.urls).toEqual([[pngUrl]]);
  expect(images.seen).toEqual([
    {
      path: "/cat.txt?size=1",
      host: `127.0.0.1:${images.port}`,
      headers: ["accept", "accept-encoding", "host", "user-agent"],
    },
  ]);
});

test("every address is read once, even for several mentions and targets", async () => {
  model.isDown = true;
  const urls = [at("/a"), at("/b"), at("/a"), pngUrl];
  const upstreams = [upstreamFor("first"), upstreamFor("second")];
  const { error } = await look({ urls, settings: named, upstreams });
  expect(error?.code).toBe("model_unavailable");
  // Each target is tried twice.
  expect(model.urls).toEqual(Array(4).fill(Array(4).fill(pngUrl)) as string[][]);
  expect(images.seen.map(({ path }) => path).toSorted()).toEqual(["/a", "/b"]);
});

test("a name is resolved once, and the request goes to that address with the name as Host", async () => {
  const urls = [`http://images.example:${images.port}/a`];
  const settings = { ...local, allowedHosts: ["images.example"] };
  const resolved = [["127.0.0.1"], ["169.254.169.254"]];
  const { error, asked } = await look({ urls, settings, resolved });
  expect(error).toBeUndefined();
  expect(asked).toEqual(["images.example"]);
  expect(images.seen[0]?.host).toBe(`images.example:${images.port}`);
});

test("an address of a host that does not answer is skipped", async () => {
  const urls = [`http://images.example:${images.port}/a`];
  const settings = { ...local, allowedHosts: ["images.example"] };
  const { error } = await look({ urls, settings, resolved: [["127.0.0.9", "127.0.0.1"]] });
  expect(error).toBeUndefined();
  expect(model.urls).toEqual([[pngUrl]]);
});

test("at most two redirects are followed, each checked like the first address", async () => {
  const redirectTo = (url: string) => at(`/redirect/${encodeURIComponent(url)}`);
  expect((await look({ urls: [redirectTo("/a")], settings: named })).error).toBeUndefined();
  const twice = redirectTo(redirectTo("/a"));
  expect((await look({ urls: [twice], settings: named })).error).toBeUndefined();
  const { error } = await look({ urls: [redirectTo(twice)], settings: named });
  expect(error?.message).toContain("redirects too often");
  for (const target of ["http://169.254.169.254/latest", "file:///etc/passwd", "http://[::1]:1/"]) {
    expect((await look({ urls: [redirectTo(target)], settings: named })).error?.status).toBe(400);
  }
});

test("a redirect to a host that is not allowed is refused", async () => {
  const elsewhere = `http://other.example:${images.port}/a`;
  const urls = [at(`/redirect/${encodeURIComponent(elsewhere)}`)];
  const { error, asked } = await look({ urls, settings: named, resolved: [["127.0.0.1"]] });
  expect(error?.message).toContain("host is not one");
  expect([asked, images.seen.length]).toEqual([[], 1]);
});

test("an image by address is 400 unless the operator allows it, and the model gets no request", async () => {
  const { error, records } = await look({ urls: [pngUrl, at("/a")], settings: { enabled: false } });
  expect(error).toMatchObject({
    status: 400,
    code: "unsupported_parameter",
    param: "messages[1].content[2].image_url.url",
  });
  expect(error?.message).toContain("data URL");
  expect(error?.message).toContain("image_fetch");
  expect([images.seen, model.urls]).toEqual([[], []]);
  expect(records).toHaveLength(1);
});

test("a target that takes addresses serves the call even if fetching is not allowed", async () => {
  const upstreams = [upstreamFor("first"), upstreamFor("second", true)];
  const { error } = await look({
    urls: [at("/a")],
    settings: { ...named, enabled: false },
    upstreams,
  });
  expect(error).toBeUndefined();
  expect([images.seen, model.urls]).toEqual([[], [[at("/a")]]]);
});

describe("an upstream that takes addresses", () => {
  const outside = ["93.184.215.14"];
  const handOn = (wish: Look) =>
    look({ upstreams: [upstreamFor("up", true), upstreamFor("second", true)], ...wish });

  test("gets the addresses, with one look-up for each host", async () => {
    model.isDown = true;
    const urls = ["https://images.example/a?b=%2F..%2f&c=~", "https://images.example/b", pngUrl];
    const { error, asked } = await handOn({ urls, resolved: [outside] });
    expect(error?.code).toBe("model_unavailable");
    expect(asked).toEqual(["images.example"]);
    expect(model.urls.length).toBeGreaterThan(1);
    for (const sent of model.urls) expect(sent).toEqual(urls);
    expect(images.seen).toEqual([]);
  });

  test("gets the checked form of an ambiguous address", async () => {
    const odd = "http://images.example\\@169.254.169.254/a b";
    await handOn({ urls: [odd], resolved: [outside] });
    expect(model.urls).toEqual([["http://images.example/@169.254.169.254/a%20b"]]);
  });

  test.each([
    ["http://images.example/a", [["10.0.0.7"]], "no address"],
    ["http://images.example/a", [["93.184.215.14", "127.0.0.1"]], "no address"],
    ["http://images.example/a", [], "no address"],
    ["http://user:secret@images.example/a", [outside], "credentials"],
    ["http://images.example:22/a", [outside], "port"],
  ])("does not get %s that resolves to %j", async (url, resolved, reason) => {
    const { error } = await handOn({ urls: [pngUrl, url], resolved });
    expect(error).toMatchObject({
      status: 400,
      code: "invalid_image_url",
      param: "messages[1].content[2].image_url.url",
    });
    expect(error?.message).toContain(reason);
    expect(error?.message).toContain("send the image as a data URL");
    expect(model.urls).toEqual([]);
  });

  test("gets no more hosts, and waits no longer for a look-up, than for fetched images", async () => {
    const urls = Array.from({ length: 5 }, (_, index) => `https://images${index}.example/a`);
    const many = await handOn({ urls, resolved: urls.map(() => outside) });
    expect(many.error?.message).toContain("at 4 hosts at most");
    expect(many.asked).toEqual([]);
    const silent = new Promise<readonly string[]>(() => undefined);
    const late = await handOn({
      urls: urls.slice(0, 1),
      resolved: [silent],
      settings: { timeoutMs: 20 },
    });
    expect(late.error?.message).toContain("could not be looked up in time");
    expect(model.urls).toEqual([]);
  });

  test("gets private addresses only if the operator allows them, and then by name", async () => {
    const settings = { allowsPrivateAddresses: true, allowedHosts: ["127.0.0.1"] };
    expect((await handOn({ urls: [at("/a")], settings })).error).toBeUndefined();
    expect(model.urls).toEqual([[at("/a")]]);
    const { error } = await handOn({ urls: ["http://other.example/a"], settings });
    expect(error?.message).toContain("host is not one");
  });
});

test.each([
  ["/html", "PNG, JPEG, GIF or WebP"],
  ["/compressed", "PNG, JPEG, GIF or WebP"],
  ["/large", "larger than 100000 bytes"],
  ["/endless", "larger than 100000 bytes"],
  ["/missing", "status 404"],
  ["/silent", "took too long"],
])("%s is a 400: the image %s", async (path, reason) => {
  const settings = { ...named, timeoutMs: path === "/silent" ? 100 : 5_000 };
  const { error, records } = await look({ urls: [pngUrl, at(path)], settings });
  expect(error).toMatchObject({
    status: 400,
    code: "invalid_image_url",
    param: "messages[1].content[2].image_url.url",
  });
  expect(error?.message).toContain(reason);
  expect(error?.message).not.toContain(String(images.port));
  expect(model.urls).toEqual([]);
  expect(records[0]).toMatchObject({ outcome: "failed", status: 400, inputTokens: 0 });
});

test("more images than allowed are refused before any is read", async () => {
  const urls = Array.from({ length: 5 }, (_, index) => at(`/${index}`));
  const { error } = await look({ urls, settings: named });
  expect(error?.message).toContain("at most 4 image URLs");
  expect(images.seen).toEqual([]);
});

test("an image that fails, or a caller that leaves, ends the reading of the others", async () => {
  const failing = await look({ urls: [at("/silent"), at("/missing")], settings: named });
  expect(failing.error?.message).toContain("404");
  while (images.closed < 1) await Bun.sleep(1);
  const leaving = new AbortController();
  const left = look({ urls: [at("/silent")], settings: named, signal: leaving.signal });
  while (images.seen.length < 3) await Bun.sleep(1);
  leaving.abort();
  expect((await left).error?.status).toBe(499);
  while (images.closed < 2) await Bun.sleep(1);
});

test("nothing is read for a target that is unusable or has no place", async () => {
  const { adapter, ...rest } = upstreamFor("blind");
  const { chat: codec } = adapter;
  if (codec === undefined) throw new Error("the adapter serves chat models");
  const encode: typeof codec.encode = (request, identifier) => {
    const { body } = codec.encode(request, identifier).request;
    const details = { kind: "unsupported", message: "no images", param: "messages" } as const;
    if (String(body).includes("image_url")) throw new UpstreamFailure(details);
    return codec.encode(request, identifier);
  };
  const blind = { ...rest, adapter: { ...adapter, chat: { ...codec, encode } } };
  const full = { ...upstreamFor("full"), maxInFlight: 0 };
  const urls = [at("/a"), at("/b")];
  const refused = await look({ urls, settings: named, upstreams: [blind] });
  expect([refused.error?.status, refused.error?.code]).toEqual([400, "unsupported_parameter"]);
  const crowded = await look({ urls, settings: named, upstreams: [blind, full] });
  expect([crowded.error?.status, crowded.error?.code]).toEqual([503, "model_unavailable"]);
  expect(images.seen).toEqual([]);
  const served = await look({ urls, settings: named, upstreams: [blind, full, upstreamFor("up")] });
  expect(served.error).toBeUndefined();
  expect(images.seen).toHaveLength(2);
});

test("the images of a call may have four times the limit of one image, in total", async () => {
  const urls = (count: number) => Array.from({ length: count }, (_, index) => at(`/half?${index}`));
  const settings = { ...named, maxImages: 10 };
  expect((await look({ urls: urls(7), settings })).error).toBeUndefined();
  const { error } = await look({ urls: urls(10), settings });
  expect([error?.status, error?.code]).toEqual([400, "invalid_image_url"]);
  expect(error?.message).toContain("400000 bytes");
  // Running fetches must not affect the next tests.
  await Bun.sleep(50);
});

test("calls wait until other images have left memory, and read nothing meanwhile", async () => {
  const imageMemory = new MemoryGate(systemClock);
  const leaving = new AbortController();
  const shared = { settings: { ...named, timeoutMs: 60_000 }, imageMemory };
  const first = look({ urls: [at("/silent")], signal: leaving.signal, ...shared });
  while (images.seen.length === 0) await Bun.sleep(1);
  const second = look({ urls: [at("/second")], ...shared });
  const leavingThird = new AbortController();
  const third = look({ urls: [at("/third")], signal: leavingThird.signal, ...shared });
  await Bun.sleep(20);
  expect(images.seen.map(({ path }) => path)).toEqual(["/silent"]);
  leavingThird.abort();
  expect((await third).error?.status).toBe(499);
  leaving.abort();
  expect((await first).error?.status).toBe(499);
  expect((await second).error).toBeUndefined();
  expect(images.seen.map(({ path }) => path)).toEqual(["/silent", "/second"]);
  expect(imageMemory.heldBytes).toBe(0);
});

test("images are counted by their size, until the answer begins", async () => {
  const imageMemory = new MemoryGate(systemClock);
  let heldBytes = -1;
  const { adapter, ...rest } = upstreamFor("up");
  const authorize: typeof adapter.authorize = (request) => {
    ({ heldBytes } = imageMemory);
    return Promise.resolve(request);
  };
  const upstreams = [{ ...rest, adapter: { ...adapter, authorize } }];
  await look({ urls: [at("/half")], settings: named, upstreams, imageMemory });
  expect(heldBytes).toBe(50_000 + png.byteLength);
  expect(imageMemory.heldBytes).toBe(0);
});

test("a call that waits too long for memory is refused as overloaded", async () => {
  const imageMemory = new MemoryGate(systemClock);
  const owner = { name: "key", account: "account", full: () => overloaded(0) };
  const limits = { allBytes: 300_000, ownBytes: 300_000, waitMs: 0, queue: 0 };
  await imageMemory.hold({ ...owner, request: new AbortController() }, limits).reserve(300_000);
  const settings = { ...named, timeoutMs: 10 };
  const { error } = await look({ urls: [at("/cat")], settings, imageMemory });
  expect([error?.status, error?.code]).toEqual([503, "model_unavailable"]);
  expect(error?.headers["retry-after"]).toBeDefined();
  expect(images.seen).toEqual([]);
});

test("one account holds at most half of the memory", async () => {
  const imageMemory = new MemoryGate(systemClock);
  const { accountId: account } = callOf().caller.key;
  const request = new AbortController();
  const limits = { allBytes: 300_000, ownBytes: 150_000, waitMs: 0, queue: 0 };
  const hold = imageMemory.hold({ name: "k", account, request, full: () => overloaded(0) }, limits);
  await hold.reserve(150_000);
  const settings = { ...named, timeoutMs: 10 };
  expect((await look({ urls: [at("/cat")], settings, imageMemory })).error?.status).toBe(503);
  hold.release();
  expect((await look({ urls: [at("/cat")], settings: named, imageMemory })).error).toBeUndefined();
});

describe("no internal host is reached", () => {
  const port = () => images.port;
  /** Spellings of this machine, its network and the metadata services of clouds. */
  const hosts = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "%31%32%37.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "0",
    "0.0.0.0",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[2002:7f00:1::]",
    "[::ffff:0:127.0.0.1]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "168.63.129.16",
    "100.100.100.200",
    "224.0.0.1",
    "255.255.255.255",
  ];

  test.each(hosts)("at %s, on the default port or another", async (host) => {
    for (const url of [`http://${host}/a`, `http://${host}:${port()}/a`, `https://${host}/a`]) {
      for (const takesImageUrls of [false, true]) {
        const upstreams = [upstreamFor("up", takesImageUrls)];
        const { error } = await look({ urls: [url], settings: { enabled: true }, upstreams });
        expect([url, error?.code]).toEqual([url, "invalid_image_url"]);
      }
    }
    expect([images.seen, model.urls]).toEqual([[], []]);
  });

  test.each(hosts)("at %s, even if the operator listed the host", async (host) => {
    const url = `http://${host}:${port()}/a`;
    const allowedHosts = [new URL(url).hostname.replace(/\.$/, "")];
    const { error } = await look({ urls: [url], settings: { enabled: true, allowedHosts } });
    expect(error?.code).toBe("invalid_image_url");
    expect(images.seen).toEqual([]);
  });

  test.each([
    [["127.0.0.1"]],
    [["::1"]],
    [["::ffff:127.0.0.1"]],
    [["169.254.169.254"]],
    [["93.184.215.14", "127.0.0.1"]],
    [["127.0.0.1", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]],
    [[]],
    [["localhost"]],
  ])("by a name that resolves to %p", async (addresses) => {
    const urls = [`http://images.example:${port()}/a`];
    const settings = { enabled: true, allowedHosts: ["images.example"] };
    const { error } = await look({ urls, settings, resolved: [addresses] });
    expect(error?.message).toContain("no address that images may come from");
    expect(images.seen).toEqual([]);
  });

  test("and an unknown name has the same error as an internal one", async () => {
    const ask = (resolved: string[][]) =>
      look({ urls: ["http://images.example/a"], settings: { enabled: true }, resolved });
    const [unknown, inside] = [await ask([]), await ask([["10.0.0.7"]])];
    expect(unknown.error?.message).toBe(inside.error?.message ?? "");
  });

  test("at the metadata services of clouds, even if private addresses are allowed", async () => {
    for (const host of ["169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "0.0.0.0"]) {
      const { error } = await look({ urls: [`http://${host}/a`], settings: local });
      expect(error?.code).toBe("invalid_image_url");
    }
  });

  test.each([
    ["http://user:secret@127.0.0.1/a", "credentials"],
    ["http://secret@127.0.0.1/a", "credentials"],
    ["http://127.0.0.1:22/a", "port"],
    ["https://other.example/a", "host is not one"],
    ["http://127.0.0.1.example/a", "host is not one"],
    ["http://:0/", "not a URL"],
    ["https://", "not a URL"],
  ])("by %s", async (url, reason) => {
    const allowedHosts = reason === "port" ? [] : ["127.0.0.1"];
    const { error } = await look({ urls: [url], settings: { ...local, allowedHosts } });
    expect(error?.message).toContain(reason);
    expect(error?.message).not.toContain("secret");
    expect(images.seen).toEqual([]);
  });
});
