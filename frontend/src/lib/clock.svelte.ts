// One clock for every age and countdown on screen.

class Clock {
  now = $state(Date.now());
  constructor() {
    setInterval(() => { this.now = Date.now(); }, 1000);
  }
}

export const clock = new Clock();
