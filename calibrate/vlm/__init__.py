"""Block diffusion and trained heads, through the optional library mlx-vlm and its own loops."""
