// Loading the same thing over and over: once at a time, and not faster than anybody can read.

/** Wraps a load so that calls which come while one is under way share the one after it, `pause` ms later. */
export function shared(load: () => Promise<void>, pause: number): () => Promise<void> {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  const call = (): Promise<void> => {
    if (!running) {
      running = load().finally(() => { running = null; });
      return running;
    }
    next ??= running.then(() => new Promise((r) => setTimeout(r, pause))).then(() => {
      next = null;
      return call();
    });
    return next;
  };
  return call;
}
