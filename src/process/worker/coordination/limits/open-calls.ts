import type { LeaseAccount } from "../../../../store/coordinator/leases/lease-account.ts";
import type { LimitRequest } from "../../../../store/store.ts";
import type { HeldCall, HeldNote } from "../../../link/limit-use-wire.ts";
import { scopesToWire } from "../../../link/limit-wire.ts";

interface OpenCall {
  readonly request: LimitRequest;
  /** The slot in which it was admitted; undefined: only an earlier control process knows it. */
  slot: number | undefined;
  /** Whether the worker admitted it alone. */
  isOwn: boolean;
  /** The account of its scopes. */
  readonly account: LeaseAccount | undefined;
  isSettled: boolean;
  /** Tokens that control has certainly charged. */
  charged: number;
}

interface Note extends HeldNote {
  /** Whether a control process may have received it. */
  isTold: boolean;
}

/** Calls of this worker that are not settled, and their use that control may not know yet. */
export class OpenCalls {
  readonly #calls = new Map<string, OpenCall>();
  readonly #notes: Note[] = [];
  /** Number of notes removed because control has received them. */
  #heard = 0;

  /** Number of notes so far, for `heard`. */
  get noted(): number {
    return this.#heard + this.#notes.length;
  }

  get unheard(): number {
    return this.#notes.length;
  }

  isOwn(callId: string): boolean {
    return this.#calls.get(callId)?.isOwn === true;
  }

  /** The account of a call's scopes; undefined: nothing is leased for them. */
  accountOf(callId: string): LeaseAccount | undefined {
    return this.#calls.get(callId)?.account;
  }

  open(request: LimitRequest, at: Pick<OpenCall, "slot" | "isOwn" | "account">): void {
    const { tokens: charged } = request;
    this.#calls.set(request.callId, { request, ...at, isSettled: false, charged });
  }

  /** The worker itself has charged this much for a call, or has settled it, alone or in a lease. */
  noteOwn({ callId, tokens, isFinal }: HeldNote): void {
    const call = this.#calls.get(callId);
    if (isFinal) this.#calls.delete(callId);
    else if (call !== undefined && tokens > call.charged) call.charged = tokens;
  }

  /** Records a note for control; false for a call that is not open. */
  note(note: HeldNote, isTold: boolean): boolean {
    const call = this.#calls.get(note.callId);
    if (call === undefined || call.isSettled) return false;
    call.isSettled = note.isFinal;
    this.#notes.push({ ...note, isTold });
    return true;
  }

  /** Control has received the first `noted` notes. */
  heard(noted: number): void {
    const count = noted - this.#heard;
    if (count <= 0) return;
    this.#heard = noted;
    for (const { callId, tokens, isFinal } of this.#notes.splice(0, count)) {
      const call = this.#calls.get(callId);
      if (isFinal) this.#calls.delete(callId);
      else if (call !== undefined && tokens > call.charged) call.charged = tokens;
    }
  }

  /** Reports to a control process, which from now on may know all of it. */
  report(): { readonly calls: readonly HeldCall[]; readonly notes: readonly HeldNote[] } {
    const notes = this.#notes.map((note) => this.#certain(note));
    for (const note of this.#notes) note.isTold = true;
    return { calls: Array.from(this.#calls.values(), heldCall), notes };
  }

  /** Control takes over the reported calls. */
  handedOver(): void {
    for (const call of this.#calls.values()) {
      if (!call.isOwn) continue;
      call.isOwn = false;
      call.slot = undefined;
    }
  }

  /** What control may already have refunded is not refunded again. */
  #certain({ callId, tokens, isFinal, isTold }: Note): HeldNote {
    const charged = this.#calls.get(callId)?.charged ?? 0;
    return { callId, tokens: isTold ? Math.max(tokens, charged) : tokens, isFinal };
  }
}

function heldCall({ request, slot, isOwn, charged }: OpenCall): HeldCall {
  const { callId, scopes, tokens, mostTokens = tokens } = request;
  return { callId, scopes: scopesToWire(scopes), tokens, mostTokens, slot, charged, isOwn };
}
