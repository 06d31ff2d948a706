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

/** Wraps a fetch by id so that each id is fetched once, however many ask for it. */
export function once<T>(get: (id: string) => Promise<T>): (id: string) => Promise<T> {
  const got = new Map<string, Promise<T>>();
  return (id) => {
    const it = got.get(id) ?? get(id);
    got.set(id, it);
    return it;
  };
}
