import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { driveCalls } from "../load/drive-calls.ts";
import { driveStreams } from "../load/drive-streams.ts";
import { chatRequest } from "../load/requests.ts";
import { startPeer, type PeerOptions } from "./peer.ts";
import { nameOf } from "./process-usage.ts";
import { startUpstream } from "./upstream.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-peer-test-"));
const signal = AbortSignal.timeout(30_000);
const driver = { folder, signal };

/** Forwards calls that have its path, its header and its model, and refuses others. */
const program = `
const { target } = await Bun.file("settings.json").json();
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env.OWN_PORT),
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/ready") return new Response("yes");
    const body = await request.json();
    const isRight = pathname === "/own/chat" && request.headers.get("x-own") === target;
    if (!isRight || body.model !== "own" || "temperature" in body) {
      return new Response("wrong", { status: 400 });
    }
    return fetch("http://" + target + "/v1/chat/completions", {
      method: "POST",
      body: JSON.stringify(body),
    });
  },
});
await Bun.write("port", String(server.port));
`;

const description = {
  name: "forwarder",
  notes: "forwards",
  install: "cp forwarder {installed}",
  command: [process.execPath, "{folder}/peer.ts"],
  environment: { OWN_PORT: "{port}" },
  files: { "peer.ts": program, "settings.json": '{ "target": "{upstream}" }' },
  headers: { "x-own": "{upstream}" },
  chat_path: "/own/chat",
  body: { model: "own", temperature: null },
  ready_path: "/ready",
  start_limit_seconds: 15,
  warm_up_seconds: 0.1,
};

afterAll(() => rmSync(folder, { recursive: true }));

test("a peer takes calls and streams in the form that its description gives them", async () => {
  await using upstream = await startUpstream();
  await using peer = await startPeer(optionsFor(description, upstream.port));
  const load = { destination: peer, request: chatRequest(), connections: 2, durationMs: 200 };
  expect((await driveCalls(load, driver)).failures).toBe(0);
  expect((await driveCalls({ ...load, perSecond: 100 }, driver)).failures).toBe(0);
  const streams = { streams: 3, chunks: 5, pauseMs: 5 };
  const drive = { destination: peer, load: streams, openWithinMs: 10, signal };
  const counts = await driveStreams(drive);
  expect(counts.whole).toBe(3);
  expect(counts.firstP99Ms).toBeGreaterThan(0);
});

test("a port of the peer's own choice is read from its file", async () => {
  await using upstream = await startUpstream();
  const own = { ...description, environment: { OWN_PORT: "0" }, port_file: "{folder}/port" };
  await using peer = await startPeer(optionsFor({ ...own, name: "chooser" }, upstream.port));
  const load = { destination: peer, request: chatRequest(), connections: 1, durationMs: 100 };
  expect((await driveCalls(load, driver)).failures).toBe(0);
});

test("what a peer has started ends with it", async () => {
  const lasting = `Bun.spawn(["sleep", "1000"]); ${program}`;
  const files = { ...description.files, "peer.ts": lasting };
  await using upstream = await startUpstream();
  const peer = await startPeer(
    optionsFor({ ...description, name: "parent", files }, upstream.port),
  );
  const [, sleeper = 0] = peer.pids();
  expect(nameOf(sleeper)).toBe("sleep");
  await peer[Symbol.asyncDispose]();
  while (nameOf(sleeper) === "sleep" && !signal.aborted) await Bun.sleep(10);
  expect(nameOf(sleeper)).not.toBe("sleep");
});

test("a peer that is not installed is refused with the way to install it", async () => {
  const absent = { ...description, name: "absent", command: ["{installed}/forwarder"] };
  expect(startPeer(optionsFor(absent, 1))).rejects.toThrow(`cp forwarder ${folder}/installed`);
});

function optionsFor(own: PeerOptions["description"], upstreamPort: number): PeerOptions {
  return { description: own, folder, upstreamPort, installedFolder: join(folder, "installed") };
}
