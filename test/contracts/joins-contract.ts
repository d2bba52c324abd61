import { beforeEach, describe, expect, test } from "bun:test";
import type { ClaimDecision, Joins } from "../../src/store/joins.ts";

/** What decides for two processes. */
export interface JoinsFixture {
  readonly one: Joins;
  readonly other: Joins;
  /** The process of `one` dies. */
  oneDies(): void | Promise<void>;
  /** Until everything that was told has arrived. */
  settle(): Promise<void>;
  /** Time passes, longer than any wait. */
  waitLong(): Promise<void>;
}

const request = { id: "a", requestDigest: "content" };

/** What everything must do that decides which process runs a request. */
export function joinsContract(
  name: string,
  create: () => JoinsFixture | Promise<JoinsFixture>,
): void {
  describe(`joins contract: ${name}`, () => {
    let fixture: JoinsFixture;
    beforeEach(async () => {
      fixture = await create();
    });

    /** A claim, and what it was answered so far. */
    async function begun(joins: Joins, asked = request): Promise<ClaimDecision[]> {
      const decisions: ClaimDecision[] = [];
      Promise.resolve(joins.claim(asked)).then(
        (decision) => decisions.push(decision),
        // The process has died.
        () => undefined,
      );
      await fixture.settle();
      return decisions;
    }

    test("the first owns the request; the other is told when it may look for the answer", async () => {
      const { one, other } = fixture;
      expect(await begun(one)).toEqual(["owner"]);
      const waiting = await begun(other);
      expect(waiting).toEqual([]);
      one.release("a");
      await fixture.settle();
      expect(waiting).toEqual(["ended"]);
      expect(await begun(other)).toEqual(["owner"]);
      expect(await begun(one)).toEqual([]);
    });

    test("requests with other ids are independent", async () => {
      await begun(fixture.one);
      expect(await begun(fixture.other, { ...request, id: "b" })).toEqual(["owner"]);
    });

    test("a different request with the id is refused while the owner has it", async () => {
      const { one, other } = fixture;
      await begun(one);
      expect(await begun(other, { ...request, requestDigest: "different" })).toEqual(["reused"]);
      one.release("a");
      await fixture.settle();
      expect(await begun(other, { ...request, requestDigest: "different" })).toEqual(["owner"]);
    });

    test("who waits may leave, which changes nothing for the owner", async () => {
      const { one, other } = fixture;
      await begun(one);
      const left = await begun(other);
      other.release("a");
      await fixture.settle();
      expect(left).toEqual(["ended"]);
      other.release("a");
      expect(await begun(other)).toEqual([]);
    });

    test("an owner that has released twice does not end the claim of the next", async () => {
      const { one, other } = fixture;
      await begun(one);
      one.release("a");
      await fixture.settle();
      await begun(other);
      one.release("a");
      await fixture.settle();
      expect(await begun(one)).toEqual([]);
    });

    test("an owner that claims again owns the request still", async () => {
      const { one, other } = fixture;
      await begun(one);
      const waiting = await begun(other);
      expect(await begun(one)).toEqual(["owner"]);
      expect(waiting).toEqual([]);
    });

    test("an answer that only its owner has is neither waited for nor got anew", async () => {
      const { one, other } = fixture;
      await begun(one);
      const waiting = await begun(other);
      one.unsaved("a");
      await fixture.settle();
      expect(waiting).toEqual(["ended"]);
      expect(await begun(other)).toEqual(["unsaved"]);
      other.unsaved("a");
      one.release("a");
      await fixture.settle();
      expect(await begun(other)).toEqual(["owner"]);
    });

    test("a process that dies releases what it owned and leaves where it waited", async () => {
      const { one, other } = fixture;
      await begun(one);
      await begun(other, { ...request, id: "b" });
      await begun(one, { ...request, id: "b" });
      const waiting = await begun(other);
      await fixture.oneDies();
      await fixture.settle();
      expect(waiting).toEqual(["ended"]);
      expect(await begun(other)).toEqual(["owner"]);
    });

    test("no wait is without an end", async () => {
      const { one, other } = fixture;
      await begun(one);
      const waiting = await begun(other);
      await fixture.waitLong();
      expect(waiting).toEqual(["ended"]);
      expect(await begun(other)).toEqual([]);
    });
  });
}
