import { beforeEach, describe, expect, test } from "bun:test";
import {
  doubtMs,
  mostDoubts,
  type ClaimAnswer,
  type HeldClaim,
  type KeptReply,
  type ReplyStore,
  type WantedClaim,
} from "../../src/store/store.ts";

export interface ClaimsFixture {
  readonly store: ReplyStore;
  /** Lets time pass for claims. */
  pass(durationMs: number): Promise<void>;
}

/** What every store of claims must do. */
export function claimsContract(
  name: string,
  create: () => ClaimsFixture | Promise<ClaimsFixture>,
): void {
  describe(`claims contract: ${name}`, () => {
    let fixture: ClaimsFixture;
    let store: ReplyStore;
    beforeEach(async () => {
      fixture = await create();
      ({ store } = fixture);
    });

    async function kindOf(holder: string, more: Partial<WantedClaim> = {}): Promise<string> {
      return (await claim(holder, more)).kind;
    }

    function claim(holder: string, more: Partial<WantedClaim> = {}): Promise<ClaimAnswer> {
      return store.claim({ ...claimOf(holder), ...more });
    }

    /** Asks until a claim that nobody confirms is over. */
    async function doubt(holder: string, id = "call"): Promise<void> {
      for (let times = 0; times < mostDoubts; times += 1) {
        await fixture.pass(doubtMs);
        expect(await kindOf(holder, { id })).toBe("running");
      }
      await fixture.pass(doubtMs);
    }

    test("of many who ask at once, one makes the call", async () => {
      const holders = Array.from({ length: 20 }, (_, index) => `req_${index}`);
      const kinds = await Promise.all(holders.map((holder) => kindOf(holder)));
      expect(kinds.toSorted()).toEqual([...kinds.slice(1).map(() => "running"), "yours"]);
      expect(await kindOf("req_other", { id: "another call" })).toBe("yours");
    });

    test("another request under the id of a running one is told apart", async () => {
      await claim("one");
      expect(await kindOf("two", { requestDigest: "other" })).toBe("reused");
      expect(await kindOf("three")).toBe("running");
    });

    test("a released claim is free, and only its holder can release it", async () => {
      await claim("one");
      await store.release(heldBy("two"));
      expect(await kindOf("two")).toBe("running");
      await store.release(heldBy("one"));
      expect(await kindOf("two", { requestDigest: "other" })).toBe("yours");
    });

    test("an answer ends the claim of its holder, and is found instead of a claim", async () => {
      await claim("one");
      const reply = replyOf("call");
      expect(await store.keep({ reply, holder: "one", limitBytes: 1e6 })).toBe(0);
      expect(await claim("two")).toEqual({ kind: "kept", reply });
      expect(await claim("three", { requestDigest: "other" })).toEqual({ kind: "kept", reply });
      // No claim is left beside the answer.
      expect(await kindOf("four", { keptAfter: reply.keptAt })).toBe("yours");
    });

    test("who asks while an answer is being kept, or a claim released, never makes it twice", async () => {
      const holders = Array.from({ length: 8 }, (_, index) => `req_${index}`);
      for (let round = 0; round < 20; round += 1) {
        const id = `call_${round}`;
        await claim("one", { id });
        const isKept = round % 2 === 0;
        const end = isKept
          ? store.keep({ reply: replyOf(id), holder: "one", limitBytes: 1e6 })
          : store.release(heldBy("one", id));
        const asked = holders.map((holder) => kindOf(holder, { id }));
        const [kinds] = await Promise.all([Promise.all(asked), end]);
        expect(kinds.filter((kind) => kind === "yours").length).toBeLessThanOrEqual(isKept ? 0 : 1);
      }
    });

    test("an answer is found under an older id, unless it has expired", async () => {
      const reply = replyOf("older");
      await store.keep({ reply, holder: "one", limitBytes: 1e6 });
      const olderIds = ["oldest", "older"];
      expect(await claim("two", { olderIds })).toEqual({ kind: "kept", reply });
      expect(await kindOf("two", { olderIds, keptAfter: reply.keptAt })).toBe("yours");
    });

    test("the answer of a holder whose claim is over leaves the new claim", async () => {
      await claim("one");
      await doubt("two");
      expect(await kindOf("two")).toBe("yours");
      await store.keep({ reply: replyOf("call"), holder: "one", limitBytes: 1e6 });
      expect(await kindOf("three", { keptAfter: 1_000 })).toBe("running");
    });

    test("a claim that nobody asks for is never over, and asks count once a second", async () => {
      await claim("one");
      await fixture.pass(100 * doubtMs);
      // As when a database is back that was away.
      for (let times = 0; times < 2 * mostDoubts; times += 1) {
        expect(await kindOf("two")).toBe("running");
      }
      const holders = ["two", "three", "four"];
      for (let times = 1; times < mostDoubts; times += 1) {
        await fixture.pass(doubtMs);
        const kinds = await Promise.all(holders.map((holder) => kindOf(holder)));
        expect(kinds).toEqual(["running", "running", "running"]);
      }
      await fixture.pass(doubtMs);
      const kinds = await Promise.all(holders.map((holder) => kindOf(holder)));
      expect(kinds.toSorted()).toEqual(["running", "running", "yours"]);
    });

    test("a claim that its holder confirms goes on, however long others ask", async () => {
      await claim("one");
      await claim("one", { id: "second" });
      await claim("dead", { id: "third" });
      for (let round = 0; round < 3; round += 1) {
        for (let times = 0; times < mostDoubts; times += 1) {
          await fixture.pass(doubtMs);
          for (const id of ["call", "second"]) expect(await kindOf("two", { id })).toBe("running");
        }
        await store.confirm([heldBy("one"), heldBy("one", "second"), heldBy("one", "third")]);
      }
      await doubt("two", "third");
      expect(await kindOf("two", { id: "third" })).toBe("yours");
    });

    test("a holder that lost its claim cannot confirm or release it", async () => {
      await claim("one");
      await doubt("two");
      expect(await kindOf("two")).toBe("yours");
      await store.release(heldBy("one"));
      for (let times = 0; times < mostDoubts; times += 1) {
        await fixture.pass(doubtMs);
        expect(await kindOf("three")).toBe("running");
        await store.confirm([heldBy("one")]);
      }
      await fixture.pass(doubtMs);
      expect(await kindOf("three")).toBe("yours");
    });

    test("another request under the id of a running one is told apart at any time", async () => {
      await claim("one");
      for (let times = 0; times < 3; times += 1) {
        expect(await kindOf("two", { requestDigest: "other" })).toBe("reused");
        await fixture.pass(doubtMs);
      }
    });
  });
}

function claimOf(holder: string): WantedClaim {
  return { ...heldBy(holder), requestDigest: "digest", olderIds: [], keptAfter: 0 };
}

function heldBy(holder: string, id = "call"): HeldClaim {
  return { id, holder };
}

function replyOf(id: string): KeptReply {
  const body = new Uint8Array([0, 255, 7]);
  return { id, accountId: "acc_1", requestDigest: "digest", body, keptAt: 1_000 };
}
