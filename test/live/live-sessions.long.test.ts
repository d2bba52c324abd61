import { afterAll, beforeAll, expect, test } from "bun:test";
import { sendAs, type Credential } from "../admin/admin-caller.ts";
import { openWorld, type World } from "../admin/authorization-world.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { liveReader } from "./event-reader.ts";

const minuteMs = 60_000;
const clock = new ManualClock();
let world: World;
beforeAll(async () => {
  world = await openWorld({}, clock);
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

const open = (query: string, { headers }: Credential): Promise<Response> =>
  fetch(`${world.gateway.adminUrl}/admin/v1/live?${query}`, { headers: { ...headers } });

test("a stream neither keeps its session alive nor outlives it", async () => {
  const { email } = await world.newUser("auditor");
  const session = await world.signIn(email);
  const events = liveReader(await open("topics=processes", session));
  await events.next();
  clock.advance(20 * minuteMs);
  // Not even a new one.
  const later = liveReader(await open("topics=processes", session));
  await later.next();
  clock.advance(11 * minuteMs);
  for (const each of [events, later]) {
    let event = await each.next();
    while (event?.event === "change") event = await each.next();
    expect(event?.event).toBe("end");
    expect(await each.next()).toBeUndefined();
  }
  const shown = await sendAs(
    world.gateway.adminUrl,
    { method: "GET", path: "/admin/v1/session" },
    session,
  );
  expect(shown.code).toBe("not_signed_in");
}, 180_000);

test("a stream ends when its user signs out, and one of a token when it is revoked", async () => {
  const { email } = await world.newUser("auditor");
  const session = await world.signIn(email);
  const token = await world.newToken(session);
  const bearer = { headers: { authorization: `Bearer ${token.text}` }, changeHeaders: {} };
  const streams = [];
  for (const each of [session, bearer]) {
    const events = liveReader(await open("topics=processes", each));
    await events.next();
    streams.push(events);
  }
  await world.make("DELETE", `/tokens/${token.id}`);
  const out = { method: "DELETE", path: "/admin/v1/session" };
  expect((await sendAs(world.gateway.adminUrl, out, session)).status).toBe(200);
  for (const events of streams) {
    let event = await events.next();
    while (event?.event === "change") event = await events.next();
    expect(event?.event).toBe("end");
  }
}, 180_000);
