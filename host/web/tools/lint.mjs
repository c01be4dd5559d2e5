console.log("lint");
