/** A sequence of items over time. Its single reader takes what is available, without a promise. */
export interface Flow<Item> {
  /** The next item; undefined while there is none, and at the end. Throws once the flow failed. */
  take(): Item | undefined;
  /** Whether everything was taken, and nothing more will come. */
  readonly isOver: boolean;
  /** Calls back once, in the turn in which an item, the end or a failure arrives. */
  whenReady(call: () => void): void;
}

/** Resolves with the next item, undefined at the end; rejects with what the flow throws. */
export function nextOf<Item>(flow: Flow<Item>): Promise<Item | undefined> {
  return new Promise((resolve, reject) => {
    const read = (): void => {
      try {
        const item = flow.take();
        if (item !== undefined || flow.isOver) resolve(item);
        else flow.whenReady(read);
      } catch (error) {
        reject(error);
      }
    };
    read();
  });
}

/** The reader of a flow that waits for the next item. */
export class WaitingReader {
  #call: (() => void) | undefined;

  /** As `Flow.whenReady`. */
  whenReady(call: () => void): void {
    this.#call = call;
  }

  /** Calls the reader back, if it waits. */
  readonly wake = (): void => {
    const call = this.#call;
    this.#call = undefined;
    call?.();
  };
}
